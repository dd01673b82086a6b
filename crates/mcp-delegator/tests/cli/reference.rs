//! Reference pages generated from the tables in code. They are committed in `docs/`, and tests compare them with the code.

use std::collections::BTreeSet;

use delegator_domain::warning_code::WarningCode;
use mcp_delegator::error::{ErrorCode, ExitCode, Retryable, SideEffects};
use mcp_delegator::spec::catalog::Catalog;
use mcp_delegator::spec::{self, CommandSpec, ConfigUse, Marker, Property};

/// `docs/errors.md`.
pub(crate) fn errors() -> String {
    let mut page = String::from(
        "# Exit codes, errors and warnings\n\nGenerated from `crates/mcp-delegator/src/error` and `crates/delegator-domain/src/warning_code.rs`; do not edit.\n\n## Exit codes\n\n\
         | code | name | meaning |\n|---|---|---|\n",
    );
    for exit in ExitCode::ALL {
        page.push_str(&format!("| {} | {} | {} |\n", exit.number(), exit.name(), exit.meaning()));
    }
    page.push_str(
        "\nIf the reader closes the pipe early, the program exits silently with 0.\n\n## Error map\n\n\
         `retry`: whether the identical call may be repeated. *if safe*: for commands that change nothing.\n\n\
         | kind | exit | CLI envelope | phase | retry | side effects | standard envelope | tool envelope |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for code in ErrorCode::ALL {
        let facts = code.facts();
        let (kind, number) = facts.standard;
        // In these two cases the other envelopes do not report an error.
        let (standard, tool) = match code {
            ErrorCode::PartialFailure => (format!("success, {number}"), "ok, `meta.partial`".to_owned()),
            ErrorCode::Incomplete => (format!("{kind} {number}"), "ok, `meta.wait_expired`".to_owned()),
            _ => (format!("{kind} {number}"), facts.tool.to_owned()),
        };
        page.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} | {standard} | {tool} |\n",
            facts.kind.name(),
            facts.exit.number(),
            facts.agent,
            facts.phase.name(),
            retry(facts.retryable),
            effects(facts.side_effects),
        ));
    }
    page.push_str("\n## Warnings\n\n| code | meaning |\n|---|---|\n");
    for code in WarningCode::ALL {
        page.push_str(&format!("| {} | {} |\n", code.name(), code.meaning()));
    }
    page
}

fn retry(retryable: Retryable) -> &'static str {
    match retryable {
        Retryable::Yes => "yes",
        Retryable::No => "no",
        Retryable::IfSafe => "if safe",
    }
}

fn effects(effects: SideEffects) -> &'static str {
    match effects {
        SideEffects::None => "none",
        SideEffects::Partial => "partial",
        SideEffects::Unknown => "unknown",
        SideEffects::NoneIfSafe => "partial; none if safe",
        SideEffects::UnknownUnlessSafe => "unknown; none if safe",
    }
}

/// `docs/commands.md`.
pub(crate) fn commands(catalog: Catalog) -> String {
    let mut page = String::from(
        "# Commands\n\nGenerated from the command specs; do not edit. `mcp-delegator manifest` returns the same for programs.\n\
         A default is the built-in one; the configuration can set others ([configuration.md](configuration.md)).\n\
         `--last` stands for an id: the last submission in this directory or its git work tree, a task, a group or a chain.\n\n\
         | command | tool | what it does |\n|---|---|---|\n",
    );
    for spec in catalog.iter() {
        let tool = if spec.is_tool() { format!("`{}`", spec.tool_name("_codex_")) } else { "-".to_owned() };
        page.push_str(&format!("| `{}` | {tool} | {} |\n", spec.cli_path(), spec.about));
    }
    let mut earlier = Vec::new();
    for spec in catalog.iter() {
        let inputs = Inputs::of(spec);
        page.push_str(&section(spec, &inputs, &earlier));
        earlier.push(inputs);
    }
    page
}

#[derive(PartialEq)]
struct Input {
    name: String,
    row: String,
}

struct Inputs {
    command: String,
    inputs: Vec<Input>,
}

impl Inputs {
    fn of(spec: &CommandSpec) -> Inputs {
        let input = |property: &Property| Input { name: property.name.clone(), row: input_row(property) };
        Inputs { command: spec.cli_path(), inputs: spec.inputs().properties.iter().map(input).collect() }
    }

    fn shared_with<'a>(&'a self, other: &'a Inputs) -> impl Iterator<Item = &'a Input> {
        self.inputs.iter().filter(|input| other.inputs.contains(input))
    }

    /// The command above that describes the most inputs in the same words, if these are more than a few.
    fn most_similar<'a>(&self, earlier: &'a [Inputs]) -> Option<&'a Inputs> {
        let other = earlier.iter().rev().max_by_key(|other| self.shared_with(other).count())?;
        (self.shared_with(other).count() >= 5).then_some(other)
    }
}

fn section(spec: &CommandSpec, inputs: &Inputs, earlier: &[Inputs]) -> String {
    let details = spec.full_details();
    let mut text =
        format!("\n## {}\n\n{}\n", spec.cli_path(), format!("{}. {details}", spec.about).trim_end());
    if spec.short_path().is_some() {
        text.push_str(&format!("\nAlso: `{}`.\n", spec.path.join(" ")));
    }
    let similar = inputs.most_similar(earlier);
    let mut rows: Vec<String> = inputs
        .inputs
        .iter()
        .filter(|input| similar.is_none_or(|other| !other.inputs.contains(input)))
        .map(|input| input.row.clone())
        .collect();
    if let Some(other) = similar {
        let names: Vec<String> = inputs.shared_with(other).map(|input| format!("`{}`", input.name)).collect();
        let anchor = other.command.replace(' ', "-");
        text.push_str(&format!("\nInputs of [`{}`](#{anchor}), too: {}.\n", other.command, names.join(", ")));
    }
    rows.extend(spec.inputs().value_flags().map(|flag| {
        let long = flag.long.map(|long| format!(", `--{long}`")).unwrap_or_default();
        format!("| - | `-{}`{long} | Same as --{} {} |\n", flag.short, flag.input, flag.value)
    }));
    if spec.inputs().task_input().is_some() {
        rows.push("| - | `--last` | Instead of an id |\n".to_owned());
    }
    if !rows.is_empty() {
        text.push_str("\n| input | flag | what it is |\n|---|---|---|\n");
        text.extend(rows);
    }
    if !spec.examples.is_empty() {
        text.push_str("\n```sh\n");
        for example in spec.examples {
            text.push_str(&format!("{}    # {}\n", example.command, example.shows));
        }
        text.push_str("```\n");
    }
    text
}

fn input_row(property: &Property) -> String {
    let position = if property.has(&Marker::Positional) {
        format!(" or `{}`", property.name.to_uppercase())
    } else {
        String::new()
    };
    let choices = match property.choices().as_slice() {
        [] => String::new(),
        choices => format!(": {}", choices.join(", ")),
    };
    let text = spec::tool_schema::description_with_bounds(property);
    let short = property.short_flag().map(|letter| format!("`-{letter}`, ")).unwrap_or_default();
    format!("| `{}` | {short}`--{}`{position} | {text}{choices} |\n", property.name, property.flag())
}

/// `docs/configuration.md`.
pub(crate) fn configuration(catalog: Catalog) -> String {
    let names = |config: ConfigUse| {
        let specs = catalog.iter().filter(|spec| spec.config == config);
        let names: BTreeSet<String> = specs.map(|spec| format!("`{}`", spec.cli_path())).collect();
        names.into_iter().collect::<Vec<_>>().join(", ")
    };
    format!(
        "# Configuration\n\nThe table is generated from `crates/delegator-config`; do not edit.\n\n\
         The configuration file is the first of these: `MCP_DELEGATOR_CONFIG`, `$XDG_CONFIG_HOME/mcp-delegator/config.toml`,\n\
         `~/.config/mcp-delegator/config.toml`. `mcp-delegator config show` prints every effective value and its origin.\n\n\
         ```sh\n\
         mcp-delegator config set max_concurrent 4      # checked as at its use; comments and all other lines stay\n\
         mcp-delegator config get max_concurrent        # the value in force\n\
         mcp-delegator config unset max_concurrent\n\
         mcp-delegator config set default_mode read-only --dry-run\n\
         mcp-delegator config path                      # where your file is\n\
         ```\n\n\
         A value is written as in a variable: `config set notify.on failed,timeout`, `config set labels.team core`,\n\
         `config set agents.claude.env MY_TOKEN`. A secret is better given on standard input, with `-` as the value.\n\
         `config edit` opens a copy in `$VISUAL`, `$EDITOR` or `vi`, and replaces the file only if the copy is valid.\n\
         A file that another program changes meanwhile is not overwritten.\n\n\
         `default_agent` and `default_mode` apply to tasks that name none: of `run`, `exec` and `resume`, and of the tools.\n\
         A resumed or reviewed task stays with its agent, and a cloud task has the mode of its environment.\n\n\
         Precedence, highest first: flag, variable, project file (`.mcp-delegator.toml`), user file, default. Lists in\n\
         variables are comma-separated.\n\n\
         A project file comes with a repository and is not trusted: it may set only what the table allows. Its values for\n\
         tasks apply to every task in its work tree, wherever the call is made: the nearest file from the task's\n\
         `working_dir` up to the root of its git work tree counts. Its values for calls apply to calls made in that tree.\n\
         While the file is invalid, no task starts in the tree (`CONFIG_INVALID`); all other commands work there and print\n\
         a warning (`W_CONFIG_004`).\n\n\
         If your own file or a variable is invalid, commands fail with `CONFIG_INVALID`.\n\
         These also show what is wrong: {}.\n\
         These work with the valid values and a warning (`W_CONFIG_006`): {}.\n\
         A server starts with the warning on stderr, and refuses only what needs a valid configuration.\n\n{}",
        names(ConfigUse::Reported),
        names(ConfigUse::ValidPart),
        delegator_config::reference()
    )
}
