//! `manifest`: a machine-readable description of all commands.
//!
//! It is generated from the command specs, including declared commands. The etag changes whenever any of them
//! changes.

use crate::commands::local::agent_candidates::installed_agents;
use crate::commands::prelude::*;
use crate::output::envelopes::{cli as cli_envelope, tool as tool_envelope};
use crate::output::outcome::Completion;
use crate::spec::command_exit_codes::{ExitCodeEntry, exit_codes};
use crate::spec::formats::Format;
use crate::spec::paging::{Paging, fingerprint, paginate};
use crate::spec::tool_schema::{ToolListSettings, tool_definition};
use crate::spec::version::PRODUCT_VERSION;
use crate::spec::{self, Example};

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct ManifestInputs {
    /// Return "not modified" if the manifest still has this etag
    #[schemars(length(min = 1, max = 128))]
    pub etag: Option<String>,
    #[serde(flatten)]
    pub paging: Paging,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Manifest {
    pub name: &'static str,
    pub version: &'static str,
    pub envelope_version: &'static str,
    pub schema_version: &'static str,
    /// Exit codes of a call that names no known command.
    pub exit_codes: BTreeMap<String, ExitCodeEntry>,
    pub commands: Vec<CommandEntry>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Command")]
pub struct CommandEntry {
    /// Dotted path, as in `meta.command`.
    pub name: String,
    /// Path on the command line.
    pub path: Vec<&'static str>,
    /// The shorter path that some commands also have, without `local`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_path: Option<&'static [&'static str]>,
    pub summary: &'static str,
    pub description: String,
    /// Name of the MCP tool; null for commands that no server offers as a tool.
    pub tool: Option<String>,
    pub toolset: Option<&'static str>,
    pub category: &'static str,
    pub danger_level: &'static str,
    pub is_idempotent: bool,
    pub has_network_access: bool,
    pub is_person_required: bool,
    pub has_raw_output: bool,
    pub introduced: &'static str,
    /// The inputs, for calls of the surface on which the manifest is read.
    pub input_schema: Value,
    /// Inputs of which a call has exactly one; empty for most commands.
    pub exactly_one_of: Vec<&'static str>,
    /// Inputs that may be given by position, in order.
    pub positional: Vec<String>,
    /// Name of the schema of the answers, for the command `schema`.
    pub output_schema: String,
    /// The definition in the MCP tool list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp: Option<Value>,
    pub exit_codes: BTreeMap<String, ExitCodeEntry>,
    pub examples: &'static [Example],
    /// Names that redirect to this command.
    pub former_names: Vec<&'static str>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Names, inputs, exit codes and MCP tools of all commands.",
    shape: Shape::Show("manifest"),
    examples: &[
        example("mcp-delegator manifest --json", "everything, as one line of JSON"),
        example("mcp-delegator manifest --fields commands.name,commands.tool", "only the names"),
    ],
    former_names: &["tools"],
    ..CommandSpec::read_only::<ManifestInputs, Manifest>(&["manifest"], "Describe every command for programs")
};

pub fn run(context: &Context<'_>, input: ManifestInputs) -> Result<CommandOutput, AppError> {
    let tools = ToolListSettings {
        prefix: context.config.settings.tool_prefix.clone(),
        default_format: Format::Markdown,
        modes: (&context.config.settings).into(),
        agents: installed_agents(context),
    };
    let commands: Vec<CommandEntry> =
        context.commands.catalog.iter().map(|spec| describe_command(spec, &tools, context.surface)).collect();
    let etag = fingerprint(&json!([PRODUCT_VERSION, exit_codes(&spec::ROOT), commands]));
    if input.etag.as_deref() == Some(&etag) {
        return Ok(CommandOutput::new(Completion::NotModified, None).fact("etag", etag));
    }
    let query = json!({"command": "manifest", "etag": etag});
    let (commands, page) = paginate(commands, &input.paging, &query)?;
    let manifest = Manifest {
        name: spec::version::PROGRAM,
        version: PRODUCT_VERSION,
        envelope_version: tool_envelope::ENVELOPE_VERSION,
        schema_version: cli_envelope::SCHEMA_VERSION,
        exit_codes: exit_codes(&spec::ROOT),
        commands,
    };
    let count = page.count;
    Ok(CommandOutput::done(manifest).with_page("commands", page).fact("etag", etag).fact("count", count))
}

fn describe_command(spec: &'static CommandSpec, tools: &ToolListSettings, surface: Surface) -> CommandEntry {
    let inputs = spec.inputs();
    let names = |include: fn(&spec::Property) -> bool| {
        inputs
            .properties
            .iter()
            .filter(|property| include(property))
            .map(|property| property.name.clone())
            .collect()
    };
    CommandEntry {
        name: spec.name(),
        path: spec.path.to_vec(),
        short_path: spec.short_path(),
        summary: spec.about,
        description: spec.full_details(),
        tool: spec.is_tool().then(|| spec.tool_name(&tools.prefix)),
        toolset: spec.toolset.name(),
        category: spec.category.name(),
        danger_level: spec.danger.name(),
        is_idempotent: spec.idempotent,
        has_network_access: spec.network,
        is_person_required: false,
        has_raw_output: matches!(spec.raw, RawOutput::Always | RawOutput::Protocol),
        introduced: "3.6.0",
        input_schema: inputs.published_schema(surface, tools.modes),
        exactly_one_of: spec.exactly_one_of.to_vec(),
        positional: names(|property| property.has(&Marker::Positional)),
        output_schema: spec.name(),
        mcp: spec.is_tool().then(|| tool_definition(spec, tools)),
        exit_codes: exit_codes(spec),
        examples: spec.examples,
        former_names: spec.former_names.to_vec(),
    }
}

impl CommandData for Manifest {
    fn document(&self) -> Document {
        let row = |command: &CommandEntry| {
            vec![command.path.join(" "), cell(command.tool.as_ref()), command.summary.to_owned()]
        };
        let rows = self.commands.iter().map(row).collect();
        Document::titled(format!("mcp-delegator {}", self.version))
            .block(Block::Table { columns: vec!["command", "tool", "what it does"], rows })
    }
}
