//! Loading with real files: the origin of a value, precedence, and that all problems are reported at once.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use delegator_config::{
    Config, Envelope, KEYS, Problem, ProblemSource, Source, SourcedSetting, Sources, load, reference,
};
use delegator_domain::agents::{AgentProtocol, BUILT_IN_AGENTS};
use delegator_domain::task::Mode;
use delegator_domain::warning_code::WarningCode;
use proptest::prelude::*;

/// A home directory with a configuration file and a project below it, each written only on request.
struct Machine {
    temp: tempfile::TempDir,
    sources: Sources,
}

impl Machine {
    fn new() -> Machine {
        let temp = tempfile::tempdir().unwrap();
        let project = temp.path().join("project");
        fs::create_dir_all(project.join(".git")).unwrap();
        fs::write(project.join(".git/HEAD"), "ref: refs/heads/main").unwrap();
        let environment = [("HOME".into(), temp.path().into())].into_iter().collect();
        let sources = Sources { environment, current_dir: project, flags: Vec::new(), cores: 8 };
        Machine { temp, sources }
    }

    fn user_path(&self) -> PathBuf {
        self.temp.path().join(".config/mcp-delegator/config.toml")
    }

    fn project_path(&self) -> PathBuf {
        self.sources.current_dir.join(".mcp-delegator.toml")
    }

    fn user(self, text: &str) -> Machine {
        write(&self.user_path(), text);
        self
    }

    fn project(self, text: &str) -> Machine {
        write(&self.project_path(), text);
        self
    }

    fn variable(mut self, name: &str, value: impl Into<OsString>) -> Machine {
        self.sources.environment.insert(name.into(), value.into());
        self
    }

    fn flag(mut self, key: &str, value: &str) -> Machine {
        self.sources.flags.push((key.to_owned(), value.to_owned()));
        self
    }

    fn load(&self) -> Config {
        let config = load(&self.sources).unwrap_or_else(|invalid| panic!("{}", invalid.error));
        config.for_work_tree(&self.sources.current_dir).unwrap_or_else(|error| panic!("{error}"))
    }

    fn problems(&self) -> Vec<Problem> {
        load(&self.sources).unwrap_err().error.problems
    }
}

fn write(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn value(config: &Config, key: &str) -> (serde_json::Value, Source) {
    let setting = sourced(config, key);
    (setting.value.clone(), setting.origin.source())
}

fn sourced<'a>(config: &'a Config, key: &str) -> &'a SourcedSetting {
    config.sourced().iter().find(|setting| setting.key.name == key).unwrap()
}

#[test]
fn with_nothing_set_every_key_has_its_default() {
    let config = Machine::new().load();
    assert_eq!((&config.user_file, &config.project_file, config.warnings.len()), (&None, &None, 0));
    let shown: Vec<String> = config
        .sourced()
        .iter()
        .map(|setting| {
            assert_eq!((setting.origin.source(), &setting.value), (Source::Default, &setting.default));
            format!("{}={}", setting.key.name, setting.value)
        })
        .collect();
    let expected = r#"
codex_bin="codex" max_concurrent=8 idle_timeout_sec=300 hard_timeout_sec=1200 interrupt_grace_sec=5
terminate_grace_sec=5 idle_counts="activity" answer_timeout_sec=300 notified_answer_timeout_sec=1800 call_budget_sec=50 max_mode="workspace-write" default_agent=null default_mode="read-only"
max_stream_bytes=67108864 max_processes=4096 containment="auto" enclosure="auto" niceness=10 sweep_exempt=[] allowed_roots=[] hide_state_dir="read-only"
redact_names=[] agents={}
retention_hours=720 restore_point_retention_hours=720 worktree_quota_bytes=10737418240 repositories={} verify_unsandboxed=false budget.task_tokens=null
budget.task_turns=null budget.task_cost_cents=null budget.day_tokens=null budget.day_turns=null budget.day_cost_cents=null
budget.day_running_sec=null budget.label=null budget.label_tokens=null budget.label_turns=null budget.label_cost_cents=null
budget.label_running_sec=null max_depth=3 max_children=16 notify.command=null
notify.webhook=null notify.webhook_format="json" notify.webhook_secret_file=null notify.desktop=false notify.each_task=false
notify.on=["question","budget","stuck","completed","failed","cancelled","timeout"] notify.template=null database_url=null database_url_file=null fleet_lease_sec=180 fleet_heartbeat_sec=15
fleet_cutoff_sec=150 fleet_retention_hours=720 fleet_max_bytes=10737418240 toolsets=["local","cloud","registry"] tools=[] exclude_tools=[] read_only=false
output_schemas=false default_format="markdown" tool_prefix="_codex_" format=null envelope=null log_level="warn" labels={}"#;
    assert_eq!(shown, expected.split_whitespace().collect::<Vec<_>>());
    let settings = &config.settings;
    assert_eq!(
        (settings.envelope, settings.log_level.as_str(), settings.tool_prefix.as_str()),
        (None, "warn", "_codex_")
    );
    assert!(settings.redact_names.is_empty());
}

#[test]
fn every_value_has_its_origin() {
    let machine = Machine::new()
        .user("\u{feff}# mine\nlog_level = \"info\"\nredact_names = [\"MY_PIN\"]\n[budget]\nday_tokens = 5\n")
        .project("default_format = \"json\"\n\nmax_mode = \"read-only\"\n[labels]\nteam = \"core\"\n")
        .variable("MCP_DELEGATOR_TOOL_PREFIX", "codex_")
        .flag("envelope", "raw");
    let config = machine.load();
    let (user, project) = (machine.user_path(), machine.project_path());
    assert_eq!((config.user_file.as_ref(), config.project_file.as_ref()), (Some(&user), Some(&project)));
    let origins = [
        ("log_level", Source::UserConfig, format!("{}:2", user.display())),
        ("budget.day_tokens", Source::UserConfig, format!("{}:5", user.display())),
        ("default_format", Source::Project, format!("{}:1", project.display())),
        ("max_mode", Source::Project, format!("{}:3", project.display())),
        ("labels", Source::Project, format!("{}:4", project.display())),
        ("tool_prefix", Source::Environment, "MCP_DELEGATOR_TOOL_PREFIX".to_owned()),
        ("envelope", Source::Flag, "--envelope".to_owned()),
        ("toolsets", Source::Default, "default".to_owned()),
    ];
    for (key, source, origin) in origins {
        let setting = sourced(&config, key);
        assert_eq!((setting.origin.source(), setting.origin.to_string()), (source, origin), "{key}");
    }
    assert_eq!(value(&config, "labels").0.to_string(), r#"{"team":"core"}"#);
    let settings = &config.settings;
    assert_eq!(
        (settings.envelope, settings.log_level.as_str(), settings.tool_prefix.as_str()),
        (Some(Envelope::Raw), "info", "codex_")
    );
    assert_eq!(settings.redact_names, ["MY_PIN"]);
    assert_eq!(settings.max_mode, Mode::ReadOnly);
    assert_eq!(value(&config, "budget.day_tokens").0, 5);
}

#[test]
fn agents_get_their_defaults() {
    let machine = Machine::new().user(
        "[agents.claude]\nprotocol = \"plain\"\ncommand = [\"~/bin/claude\", \"-p\"]\nenv = [\"KEY\"]\n\
         [agents.codex]\nenv = [\"PROXY\"]\n",
    );
    let config = machine.load();
    let built_in: Vec<&str> = BUILT_IN_AGENTS.iter().map(|agent| agent.name).collect();
    assert_eq!(config.agent_names(), built_in, "a configured built-in agent is listed once");
    let (codex, claude) = (config.agent("codex").unwrap(), config.agent("claude").unwrap());
    assert_eq!(
        (codex.program.to_str(), codex.variables.as_slice()),
        (Some("codex"), &["PROXY".to_owned()][..])
    );
    assert_eq!(
        (claude.program, claude.args),
        (machine.temp.path().join("bin/claude"), vec!["-p".to_owned()])
    );
    assert_eq!((claude.protocol, claude.unsandboxed), (AgentProtocol::Plain, false));
    assert_eq!(claude.variables, ["KEY"]);
    assert!(config.agent("unknown").is_none());
    let agents = value(&config, "agents").0;
    assert_eq!(agents["claude"]["unsandboxed"], false);
    assert_eq!(agents["codex"]["protocol"], "codex-exec");
    assert!(agents["codex"]["command"].is_null(), "the built-in agent has codex_bin");
}

#[test]
fn a_project_value_that_is_not_lower_is_ignored_with_a_warning() {
    let machine = Machine::new().user("hard_timeout_sec = 100\nmax_mode = \"danger-full-access\"\n").project(
        "hard_timeout_sec = 101\nidle_timeout_sec = 299\nmax_mode = \"workspace-write\"\nmax_depth = 3\n\
         max_processes = 5000\n",
    );
    let config = machine.load();
    assert_eq!(value(&config, "hard_timeout_sec"), (100.into(), Source::UserConfig));
    assert_eq!(value(&config, "idle_timeout_sec"), (299.into(), Source::Project));
    assert_eq!(value(&config, "max_mode"), ("workspace-write".into(), Source::Project));
    assert_eq!(value(&config, "max_depth"), (3.into(), Source::Default));
    assert_eq!(value(&config, "max_processes"), (4096.into(), Source::Default));
    let warnings: Vec<&str> = config.warnings.iter().map(|warning| warning.message.as_str()).collect();
    let project = machine.project_path();
    let at = |line: usize| format!("{}:{line}: a project file may only lower", project.display());
    assert_eq!(warnings.len(), 2, "{warnings:#?}");
    assert!(
        warnings[0].starts_with(&at(1)) && warnings[0].contains("101 is ignored, 100 applies"),
        "{warnings:#?}"
    );
    assert!(warnings[1].starts_with(&at(5)) && warnings[1].contains("(default)"), "{warnings:#?}");
    assert!(config.warnings.iter().all(|warning| warning.code == WarningCode::IgnoredValue));

    let config = Machine::new().project("max_mode = \"danger-full-access\"").load();
    assert_eq!(value(&config, "max_mode"), ("workspace-write".into(), Source::Default));
    assert_eq!(config.warnings.len(), 1);
}

#[test]
fn all_problems_of_all_sources_are_reported_together() {
    let machine = Machine::new()
        .user("max_concurrent = 0\n")
        .project("codex_bin = \"/x\"\n")
        .variable("MCP_DELEGATOR_READ_ONLY", "maybe")
        .flag("log_level", "loud");
    let problems = machine.problems();
    let sources: Vec<_> = problems.iter().map(|problem| problem.source.clone()).collect();
    assert_eq!(
        sources,
        [
            ProblemSource::UserConfig,
            ProblemSource::Project,
            ProblemSource::Variable("MCP_DELEGATOR_READ_ONLY".to_owned()),
            ProblemSource::Flag("--log-level".to_owned()),
        ]
    );
    let message = load(&machine.sources).unwrap_err().error.to_string();
    let user = machine.user_path();
    assert_eq!(
        message.lines().next().unwrap(),
        format!(
            "{}:1:18: max_concurrent: expected a whole number from 1 to 10000, found `0`",
            user.display()
        )
    );
    assert_eq!(message.lines().count(), 4);
}

#[test]
fn an_invalid_configuration_leaves_the_valid_part() {
    let machine = Machine::new().user("max_concurrent = 'many'\nidle_timeout_sec = 60\n");
    let config = load(&machine.sources).unwrap_err().valid_part;
    assert_eq!(value(&config, "idle_timeout_sec").0, 60);
    assert_eq!(value(&config, "max_concurrent").1, Source::Default);
    assert_eq!(config.user_file, Some(machine.user_path()));

    let cut = "[agents.cut]\ncommand = ['x']\n[agents.whole]\nprotocol = 'plain'\ncommand = ['x']\n[broken\n";
    let config = load(&Machine::new().user(cut).sources).unwrap_err().valid_part;
    let own = &config.agent_names()[BUILT_IN_AGENTS.len()..];
    assert_eq!(own, ["whole"], "an incomplete agent is left out");
}

#[test]
fn an_explicit_file_must_exist_and_the_standard_one_need_not() {
    let machine = Machine::new();
    let missing = machine.temp.path().join("missing.toml");
    let machine = machine.variable("MCP_DELEGATOR_CONFIG", &missing);
    let problems = machine.problems();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].source, ProblemSource::Variable("MCP_DELEGATOR_CONFIG".to_owned()));
    assert_eq!((problems[0].file.as_ref(), problems[0].line), (Some(&missing), None));
    assert_eq!(problems[0].problem, "the file does not exist");

    write(&missing, "log_level = \"debug\"");
    assert_eq!(machine.load().settings.log_level, "debug");
    fs::remove_file(&missing).unwrap();
    fs::create_dir(&missing).unwrap();
    assert_eq!(machine.problems()[0].problem, "this is a directory, not a file");

    let problems = Machine::new().variable("MCP_DELEGATOR_CONFIG", "config.toml").problems();
    assert!(problems[0].problem.contains("absolute path"));
}

#[test]
fn the_user_file_is_never_used_as_project_file() {
    let machine = Machine::new().project("codex_bin = \"/mine\"\n");
    let path = machine.project_path();
    let config = machine.variable("MCP_DELEGATOR_CONFIG", path).load();
    assert_eq!(config.project_file, None);
    assert_eq!(value(&config, "codex_bin"), ("/mine".into(), Source::UserConfig));
}

#[test]
fn debug_output_never_contains_a_secret() {
    let machine = Machine::new().variable("MCP_DELEGATOR_DATABASE_URL", "postgres://u:hunter2@h/d");
    let config = machine.load();
    assert_eq!(value(&config, "database_url").0, "postgres://u:hunter2@h/d");
    assert!(sourced(&config, "database_url").key.secret);
    assert!(!format!("{config:?} {:?}", machine.sources).contains("hunter2"));
}

fn url_of(machine: &Machine) -> Option<String> {
    machine.load().database_url().unwrap().map(|url| url.reveal().to_owned())
}

#[test]
fn the_url_of_the_fleet_comes_from_its_key_or_the_first_line_of_its_file() {
    assert_eq!(url_of(&Machine::new()), None);
    let machine = Machine::new().user("database_url_file = \"~/url\"\n");
    write(&machine.temp.path().join("url"), "  postgres://u:hunter2@h/d \nsecond line\n");
    assert_eq!(url_of(&machine).as_deref(), Some("postgres://u:hunter2@h/d"));
    assert!(!format!("{:?}", machine.load().database_url()).contains("hunter2"));
    // The variable has precedence over the user's file, whichever of the two keys each sets.
    let machine = machine.variable("MCP_DELEGATOR_DATABASE_URL", "postgres://variable/d");
    assert_eq!(url_of(&machine).as_deref(), Some("postgres://variable/d"));
    let flags = [("database_url_file".to_owned(), machine.temp.path().join("url").display().to_string())];
    let config = machine.load().with_flags(&flags).unwrap();
    assert_eq!(config.database_url().unwrap().unwrap().reveal(), "postgres://u:hunter2@h/d");
}

#[test]
fn the_url_file_is_read_once() {
    let machine = Machine::new().user("database_url_file = \"~/url\"\n");
    let path = machine.temp.path().join("url");
    write(&path, "postgres://first/d");
    let config = machine.load();
    let url = |config: &Config| config.database_url().unwrap().unwrap().reveal().to_owned();
    assert_eq!(url(&config), "postgres://first/d");
    write(&path, "postgres://second/d");
    assert_eq!(url(&config), "postgres://first/d");
    assert_eq!(url(&config.with_flags(&[]).unwrap()), "postgres://first/d");
    let other = machine.temp.path().join("other");
    write(&other, "postgres://other/d");
    let flags = [("database_url_file".to_owned(), other.display().to_string())];
    assert_eq!(url(&config.with_flags(&flags).unwrap()), "postgres://other/d");
}

#[test]
fn a_url_file_that_cannot_be_used_is_a_problem_without_its_content() {
    let machine = Machine::new();
    let path = machine.temp.path().join("url");
    let machine = machine.variable("MCP_DELEGATOR_DATABASE_URL_FILE", &path);
    let problem = |machine: &Machine| machine.load().database_url().unwrap_err().to_string();
    assert!(problem(&machine).ends_with("/url: the file does not exist"));
    for text in ["", "\npostgres://h/d", "hunter2", "mysql://u:hunter2@h/d"] {
        write(&path, text);
        let problem = problem(&machine);
        assert!(problem.contains("the first line must be a URL beginning with postgres://"), "{problem}");
        assert!(!problem.contains("hunter2"), "{problem}");
    }
    write(&path, "postgres://h/d");
    let both = machine.variable("MCP_DELEGATOR_DATABASE_URL", "postgres://u:hunter2@h/d");
    let problem = problem(&both);
    assert!(problem.contains("MCP_DELEGATOR_DATABASE_URL)") && !problem.contains("hunter2"), "{problem}");
}

#[test]
fn notifications_are_planned_once_a_channel_is_configured() {
    let plan = |text: &str| {
        let plan = Machine::new().user(text).load().settings.notify_plan();
        plan.map(|plan| plan.to_text()).unwrap_or_default()
    };
    assert_eq!(plan(""), "");
    assert_eq!(plan("[notify]\non = ['failed']\ntemplate = '{state}'\n"), "");
    assert_eq!(plan("[notify]\ndesktop = true\n"), "completed,failed,cancelled,timeout/desktop");
    let all = "[notify]\non = ['failed']\ncommand = ['x']\nwebhook = 'https://h/x'\ndesktop = true\n";
    assert_eq!(plan(all), "failed/command,webhook,desktop");
    assert_eq!(plan("[notify]\non = []\ndesktop = true\n"), "");
    let each = "[notify]\non = ['failed']\ndesktop = true\neach_task = true\n";
    assert_eq!(plan(each), "failed/desktop/each_task");
}

#[test]
fn a_wrong_template_or_webhook_is_a_problem_that_names_it() {
    let problem = |text: &str| load(&Machine::new().user(text).sources).unwrap_err().error.to_string();
    let template = problem("[notify]\ntemplate = '{taks_id}'\n");
    assert!(
        template.contains(
            "notify.template: there is no placeholder `{taks_id}`; there are {subject}, {subject_id}"
        ),
        "{template}"
    );
    let webhook = problem("[notify]\nwebhook = 'http://hooks.example/private'\n");
    assert!(
        webhook.contains("notify.webhook: expected an https:// URL") && !webhook.contains("private"),
        "{webhook}"
    );
}

#[test]
fn a_project_file_never_sets_the_fleet_or_notifications() {
    let is_listed =
        |name: &str| ["fleet_", "database_", "notify."].iter().any(|start| name.starts_with(start));
    for key in KEYS.iter().filter(|key| is_listed(key.name)) {
        assert_eq!(key.project, delegator_config::ProjectRight::None, "{}", key.name);
    }
}

#[test]
fn the_times_of_the_fleet_must_ascend() {
    let valid = "fleet_heartbeat_sec = 1\nfleet_cutoff_sec = 2\nfleet_lease_sec = 3\n";
    let settings = Machine::new().user(valid).load().settings;
    assert!(settings.fleet_heartbeat < settings.fleet_cutoff && settings.fleet_cutoff < settings.fleet_lease);
    let problems = Machine::new().user("\nfleet_lease_sec = 60\n").problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    let message = problems[0].to_string();
    assert!(
        message.ends_with(
            "config.toml:2:1: fleet_lease_sec: expected more than `fleet_cutoff_sec`, which is 150 (default)"
        ),
        "{message}"
    );
    let cut_off_between_heartbeats =
        Machine::new().user("fleet_heartbeat_sec = 150\n").variable("MCP_DELEGATOR_FLEET_CUTOFF_SEC", "90");
    let problems = cut_off_between_heartbeats.problems();
    assert!(
        problems[0].to_string().starts_with(
            "MCP_DELEGATOR_FLEET_CUTOFF_SEC: fleet_cutoff_sec: expected more than `fleet_heartbeat_sec`"
        ),
        "{problems:?}"
    );
}

#[test]
fn a_lease_outlasts_the_stop_of_the_agents() {
    Machine::new().load().check_lease().unwrap();
    let graces = "interrupt_grace_sec = 60\nterminate_grace_sec = 1\n";
    // The graces of a user without a worker are not restricted.
    let error = Machine::new().user(graces).load().check_lease().unwrap_err();
    let message = error.problems[0].to_string();
    assert!(
        message.contains("fleet_lease_sec")
            && message.ends_with(
                "a worker needs at least 221: `fleet_cutoff_sec` (150), `interrupt_grace_sec` (60), \
                 `terminate_grace_sec` (1) and 10 s to stop its agents"
            ),
        "{message}"
    );
    let longer = format!("{graces}fleet_lease_sec = 221\n");
    Machine::new().user(&longer).load().check_lease().unwrap();
}

#[test]
fn an_unknown_variable_is_a_warning() {
    let config = Machine::new().variable("MCP_DELEGATOR_READONLY", "1").load();
    assert_eq!(config.warnings.len(), 1);
    assert!(config.warnings[0].message.contains("did you mean `MCP_DELEGATOR_READ_ONLY`"));
}

#[test]
fn the_reference_has_a_row_per_key_and_even_columns() {
    let reference = reference();
    let rows: Vec<&str> = reference.lines().collect();
    assert_eq!(rows.len(), KEYS.len() + 2);
    for row in &rows {
        assert_eq!(row.replace("\\|", "").matches('|').count(), 7, "{row}");
    }
    let row = |key: &str| rows.iter().find(|row| row.starts_with(&format!("| `{key}` |"))).copied().unwrap();
    assert_eq!(
        row("hard_timeout_sec"),
        "| `hard_timeout_sec` | a whole number of seconds from 1 to 86400 | `1200` | \
         `MCP_DELEGATOR_HARD_TIMEOUT_SEC` | may lower, for tasks in its work tree | Hard time limit of a task. |"
    );
    assert!(row("max_concurrent").contains("the number of cores, at least 2"));
    assert!(row("database_url").contains("none: no fleet") && row("database_url").contains("Secret"));
    assert!(row("agents.<name>.command").contains("| required | in `MCP_DELEGATOR_AGENTS` | no |"));
}

const VALID_FILE: &str = r#"max_concurrent = 3
default_format = "json"
[budget]
day_tokens = 5
[labels]
team = "x"
[agents.mine]
protocol = "plain"
command = ["x", "y"]
unsandboxed = true
[agents.codex]
env = ["A"]
[agents.other]
protocol = "codex-exec"
command = [
  "z",
]
"#;

/// Lines that are inserted into [`VALID_FILE`].
const EDITS: [&str; 9] =
    ["[broken", "[agents.new]", "[agents]", "]", "\"", "protocol = 1", "command = []", "x =", "agents = 1"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A file that is being edited is invalid in many ways; loading it reports problems and never panics.
    #[test]
    fn no_edit_of_a_valid_file_makes_loading_panic(
        edits in prop::collection::vec((0..32usize, 0..EDITS.len() + 1), 1..6),
    ) {
        let mut lines: Vec<&str> = VALID_FILE.lines().collect();
        for (at, edit) in edits {
            let at = at.min(lines.len());
            match EDITS.get(edit) {
                Some(line) => lines.insert(at, line),
                None if at < lines.len() => drop(lines.remove(at)),
                None => {}
            }
        }
        let machine = Machine::new().user(&lines.join("\n"));
        let config = load(&machine.sources).unwrap_or_else(|invalid| invalid.valid_part);
        prop_assert!(config.agent("codex").is_some());
    }

    /// The source with the highest precedence that sets a key decides it.
    #[test]
    fn the_source_with_the_highest_precedence_wins(
        user in prop::option::of(0..2usize), project in prop::option::of(0..2usize),
        environment in prop::option::of(0..2usize), flag in prop::option::of(0..2usize),
    ) {
        const FORMATS: [&str; 2] = ["markdown", "json"];
        let mut machine = Machine::new();
        let mut expected = ("markdown", Source::Default);
        if let Some(at) = user {
            machine = machine.user(&format!("default_format = '{}'", FORMATS[at]));
            expected = (FORMATS[at], Source::UserConfig);
        }
        if let Some(at) = project {
            machine = machine.project(&format!("default_format = '{}'", FORMATS[at]));
            expected = (FORMATS[at], Source::Project);
        }
        if let Some(at) = environment {
            machine = machine.variable("MCP_DELEGATOR_DEFAULT_FORMAT", FORMATS[at]);
            expected = (FORMATS[at], Source::Environment);
        }
        if let Some(at) = flag {
            machine = machine.flag("default_format", FORMATS[at]);
            expected = (FORMATS[at], Source::Flag);
        }
        prop_assert_eq!(value(&machine.load(), "default_format"), (expected.0.into(), expected.1));
    }

    /// No project file raises a limit above the value of the user.
    #[test]
    fn a_project_never_raises_a_limit(
        user in prop::option::of(1..1000u64), project in prop::option::of(1..5000u64),
        environment in prop::option::of(1..1000u64), flag in prop::option::of(1..1000u64),
    ) {
        let mut machine = Machine::new();
        if let Some(number) = user {
            machine = machine.user(&format!("hard_timeout_sec = {number}"));
        }
        if let Some(number) = project {
            machine = machine.project(&format!("hard_timeout_sec = {number}"));
        }
        if let Some(number) = environment {
            machine = machine.variable("MCP_DELEGATOR_HARD_TIMEOUT_SEC", number.to_string());
        }
        if let Some(number) = flag {
            machine = machine.flag("hard_timeout_sec", &number.to_string());
        }
        let own = user.unwrap_or(1200);
        let expected = flag.or(environment).unwrap_or(project.map_or(own, |number| number.min(own)));
        let config = machine.load();
        prop_assert_eq!(value(&config, "hard_timeout_sec").0, expected);
        let is_ignored = project.is_some_and(|number| number > own);
        prop_assert_eq!(config.warnings.len(), usize::from(is_ignored));
    }

    /// Any bytes give a configuration or an error with a position.
    #[test]
    fn no_file_makes_loading_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let machine = Machine::new();
        write(&machine.user_path(), &bytes);
        write(&machine.project_path(), &bytes);
        if let Err(invalid) = load(&machine.sources) {
            let problems = invalid.error.problems;
            prop_assert!(!problems.is_empty());
            prop_assert!(problems.iter().all(|problem| problem.file.is_some()));
        }
    }
}

#[test]
fn repositories_are_found_by_path_and_checked() {
    let text = "[repositories.\"/work\"]\nworktree_copy = [\".env\"]\n\
                [repositories.\"/work/inner\"]\nworktree_setup = \"npm ci\"\n";
    let settings = Machine::new().user(text).load().settings;
    let setup = |dir: &str| settings.repository(dir.as_ref()).map(|found| found.worktree_setup.clone());
    assert_eq!(setup("/work/inner/deep"), Some(Some("npm ci".to_owned())));
    assert_eq!((setup("/work/other"), setup("/elsewhere")), (Some(None), None));
    for broken in [
        "[repositories.relative]\n",
        "[repositories]\n\"/x\" = 1\n",
        "[repositories.\"/x\"]\nworktree_set = \"y\"\n",
    ] {
        assert!(!Machine::new().user(broken).problems().is_empty(), "{broken}");
    }
}
