//! Builds the command line of a verification: a pure function from validated values to arguments.
//!
//! A verification runs like the agent's own commands: in the task's sandbox mode and with the environment its
//! `env_policy` allows. The sandbox is `codex sandbox` (measured with 0.146 and 0.166; 0.110 takes other arguments, and
//! a probe of it fails). It passes exit codes and signals through as a shell does, disables the network, and passes the
//! environment on unchanged without applying `env_policy`; so the environment is built here.
//!
//! Two gaps are closed by a constant shell script inside the sandbox: Codex needs `CODEX_HOME`, which the command may
//! not see, so the script unsets it; and a sandbox that failed to start looks like a failed command, so the script
//! first prints a sentinel line. The command's arguments are never part of a script.
//!
//! A project's own `.codex` could widen the sandbox, see [`super::project`]. Here the directory is untrusted even
//! without one: the agent may have created it meanwhile, and a verification needs nothing that trust provides.

use std::ffi::OsString;
use std::path::PathBuf;

use delegator_domain::task::EnvPolicy;

use super::codex::{ArgList, CORE_NAMES};
use super::environment::{MARKER, Variables};
use super::permissions::Confinement;
use super::project::{ProjectTrust, projects_setting};
use super::toml_text;

const CODEX_HOME: &str = "CODEX_HOME";
const SHELL: &str = "/bin/sh";
const SENTINEL_SCRIPT: &str = r#"printf '%s\n' "$0"; exec "$@""#;
const SENTINEL_SCRIPT_UNSET_HOME: &str = r#"printf '%s\n' "$0"; unset CODEX_HOME; exec "$@""#;

/// A requested verification. Values are validated before.
#[derive(Debug, Clone)]
pub struct VerifyRequest {
    /// Program and arguments; never empty.
    pub command: Vec<String>,
    pub enclosure: Enclosure,
    pub env_policy: EnvPolicy,
    /// Value of the task marker, see [`super::environment::task_marker`].
    pub marker: String,
}

/// The sandbox of the command.
#[derive(Debug, Clone)]
pub enum Enclosure {
    /// None: the task has no sandbox, or the user permits running without one.
    Unsandboxed,
    CodexSandbox {
        program: PathBuf,
        confinement: Confinement,
        /// Working directory, canonical.
        workdir: PathBuf,
        /// Additional writable directories.
        add_dirs: Vec<PathBuf>,
        profile: Option<String>,
    },
}

/// How a verification is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyPlan {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// The complete environment.
    pub environment: Variables,
    /// First line printed from inside the sandbox.
    pub sentinel: Option<String>,
    /// The command as requested.
    pub command: Vec<String>,
}

/// Arguments and environment of a verification, derived from the agent's environment.
pub fn verify_plan(request: &VerifyRequest, agent: &Variables) -> VerifyPlan {
    let mut environment = command_environment(agent, &request.env_policy, &request.marker);
    let command = request.command.clone();
    match &request.enclosure {
        Enclosure::Unsandboxed => {
            let mut args = command.iter().map(OsString::from);
            let program = args.next().map(PathBuf::from).unwrap_or_default();
            VerifyPlan { program, args: args.collect(), environment, sentinel: None, command }
        }
        Enclosure::CodexSandbox { program, .. } => {
            let is_passed = environment.iter().any(|(name, _)| name == CODEX_HOME);
            let home = agent.iter().find(|(name, _)| name == CODEX_HOME).filter(|_| !is_passed);
            environment.extend(home.cloned());
            let sentinel = format!("verifying {}", request.marker);
            let mut args = sandbox_args(&request.enclosure);
            let script = if home.is_some() { SENTINEL_SCRIPT_UNSET_HOME } else { SENTINEL_SCRIPT };
            args.push(&["--", SHELL, "-c", script, &sentinel]);
            args.0.extend(command.iter().map(OsString::from));
            let args = args.0;
            VerifyPlan { program: program.clone(), args, environment, sentinel: Some(sentinel), command }
        }
    }
}

fn sandbox_args(enclosure: &Enclosure) -> ArgList {
    let mut args = ArgList::default();
    let Enclosure::CodexSandbox { confinement, workdir, add_dirs, profile, .. } = enclosure else {
        return args;
    };
    args.push(&["sandbox"]);
    args.push_option("--profile", profile.as_deref());
    if let Confinement::Mode(mode) = confinement {
        args.push_setting("sandbox_mode", &toml_text::string(mode.name()));
        let roots: Vec<&str> = add_dirs.iter().filter_map(|path| path.to_str()).collect();
        if !roots.is_empty() {
            args.push_setting("sandbox_workspace_write.writable_roots", &toml_text::array(roots));
        }
    }
    confinement.push_settings(add_dirs, &mut args);
    args.push_setting("projects", &projects_setting(workdir, ProjectTrust::Untrusted));
    args
}

/// The part of the agent's environment that `policy` passes to commands, filtered as Codex does it.
fn command_environment(agent: &Variables, policy: &EnvPolicy, marker: &str) -> Variables {
    let is_core = |name: &str| CORE_NAMES.contains(&name);
    let is_inherited = |name: &str| match policy {
        EnvPolicy::InheritNone => is_core(name),
        EnvPolicy::AllowList(names) => is_core(name) || names.iter().any(|listed| listed == name),
        EnvPolicy::InheritAll => true,
    };
    let inherited =
        agent.iter().filter(|(name, _)| name != MARKER && name.to_str().is_some_and(is_inherited));
    let mut environment: Variables = inherited.cloned().collect();
    environment.push((MARKER.into(), marker.into()));
    environment
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::Mode;

    use super::*;

    fn agent_variables() -> Variables {
        let variables = [
            ("PATH", "/bin"),
            ("CODEX_HOME", "/c"),
            ("MY_FLAG", "1"),
            ("OPENAI_API_KEY", "k"),
            (MARKER, "old"),
        ];
        variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn plan_for(enclosure: Enclosure, env_policy: EnvPolicy) -> VerifyPlan {
        let command = vec!["cargo".to_owned(), "test".to_owned(), "-- $(x)".to_owned()];
        verify_plan(
            &VerifyRequest { command, enclosure, env_policy, marker: "T:0".to_owned() },
            &agent_variables(),
        )
    }

    fn sandbox(mode: Mode, add_dirs: &[&str], profile: Option<&str>) -> Enclosure {
        Enclosure::CodexSandbox {
            program: "/opt/codex".into(),
            confinement: Confinement::Mode(mode),
            workdir: "/work \"here\"".into(),
            add_dirs: add_dirs.iter().map(PathBuf::from).collect(),
            profile: profile.map(str::to_owned),
        }
    }

    fn names(plan: &VerifyPlan) -> Vec<&str> {
        plan.environment.iter().map(|(name, _)| name.to_str().unwrap()).collect()
    }

    #[test]
    fn without_a_sandbox_the_command_runs_unchanged() {
        let plan = plan_for(Enclosure::Unsandboxed, EnvPolicy::InheritNone);
        assert_eq!((plan.program.to_str(), plan.sentinel.as_deref()), (Some("cargo"), None));
        assert_eq!(plan.args, ["test", "-- $(x)"]);
        assert_eq!(names(&plan), ["PATH", MARKER]);
        assert_eq!(plan.environment[1].1, "T:0", "the mark of this task, whatever stood there");
    }

    #[test]
    fn sandboxed_command_keeps_its_arguments() {
        let plan = plan_for(sandbox(Mode::WorkspaceWrite, &["/more"], Some("p")), EnvPolicy::InheritNone);
        let args: Vec<&str> = plan.args.iter().map(|arg| arg.to_str().unwrap()).collect();
        let expected = [
            "sandbox",
            "--profile=p",
            "-c",
            "sandbox_mode=\"workspace-write\"",
            "-c",
            "sandbox_workspace_write.writable_roots=[\"/more\"]",
            "-c",
            "projects={\"/work \\\"here\\\"\"={trust_level=\"untrusted\"},\"/\"={trust_level=\"untrusted\"}}",
            "--",
            "/bin/sh",
            "-c",
            SENTINEL_SCRIPT_UNSET_HOME,
            "verifying T:0",
            "cargo",
            "test",
            "-- $(x)",
        ];
        assert_eq!(args, expected);
        assert_eq!(plan.sentinel.as_deref(), Some("verifying T:0"));
    }

    #[test]
    fn codex_home_is_visible_to_codex_but_not_to_the_command() {
        let plan_with = |policy| plan_for(sandbox(Mode::ReadOnly, &[], None), policy);
        let has_script = |plan: &VerifyPlan, script: &str| plan.args.iter().any(|arg| arg == script);
        let narrow = plan_with(EnvPolicy::InheritNone);
        assert_eq!(names(&narrow), ["PATH", MARKER, CODEX_HOME]);
        assert!(has_script(&narrow, SENTINEL_SCRIPT_UNSET_HOME));
        let listed = plan_with(EnvPolicy::AllowList(vec!["MY_FLAG".to_owned()]));
        assert_eq!(names(&listed), ["PATH", "MY_FLAG", MARKER, CODEX_HOME]);
        let all = plan_with(EnvPolicy::InheritAll);
        assert_eq!(names(&all), ["PATH", CODEX_HOME, "MY_FLAG", "OPENAI_API_KEY", MARKER]);
        assert!(has_script(&all, SENTINEL_SCRIPT));
    }
}
