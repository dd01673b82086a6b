//! `schema`: JSON Schemas of all inputs and outputs.
//!
//! Schemas are generated from the command specs and the output types; none is written by hand here.

use crate::commands::prelude::*;
use crate::output::envelopes::schema as envelope_schema;
use crate::output::envelopes::schema::answer_schema;
use crate::output::outcome::Completion;
use crate::spec::ROOT;
use crate::spec::catalog::Catalog;
use crate::spec::formats::Envelope;
use crate::spec::input_schema::ModeSettings;
use crate::spec::paging::{Paging, fingerprint, paginate};

/// Begins the address of every schema.
pub const SCHEMA_URI: &str = "codex://schema/v3.6/";

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct SchemaInputs {
    /// Name of the schema (default: list all names)
    #[schemars(length(min = 1, max = 128), extend("x-markers" = [Marker::Positional]))]
    pub name: Option<String>,
    /// Return "not modified" if the schema still has this etag
    #[schemars(length(min = 1, max = 128))]
    pub etag: Option<String>,
    #[serde(flatten)]
    pub paging: Paging,
}

/// The names of all schemas, or one JSON Schema.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub struct SchemaOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schemas: Option<Vec<SchemaName>>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SchemaName {
    pub name: String,
    pub describes: String,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Envelopes (agent, standard, the five tool categories, error) and, under its dotted name, the input of every command and its output in each envelope.",
    shape: Shape::Show("schema"),
    other_shape: Some(Shape::List("schemas")),
    raw: RawOutput::Always,
    failures: &[ErrorCode::NotFound],
    examples: &[
        example("mcp-delegator schema", "the names"),
        example("mcp-delegator schema agent", "the envelope of every output in a pipe"),
        example("mcp-delegator schema local.exec", "input and output of one command, in each envelope"),
    ],
    former_names: &["schemas"],
    ..CommandSpec::read_only::<SchemaInputs, SchemaOutput>(&["schema"], "Show a JSON Schema, or list them")
};

pub fn run(context: &Context<'_>, input: SchemaInputs) -> Result<CommandOutput, AppError> {
    let data = match &input.name {
        Some(name) => find_schema(context, name)?,
        None => json!(schema_names(context.commands.catalog)),
    };
    let etag = fingerprint(&data);
    if input.etag.as_deref() == Some(&etag) {
        return Ok(CommandOutput::new(Completion::NotModified, None).fact("etag", etag));
    }
    if input.name.is_some() {
        let text = serde_json::to_string_pretty(&data).unwrap_or_default();
        return Ok(CommandOutput::done(NamedSchema(data)).raw(text).fact("etag", etag));
    }
    let query = json!({"command": "schema", "etag": etag});
    let (schemas, page) = paginate(schema_names(context.commands.catalog), &input.paging, &query)?;
    let text = schemas.iter().map(|schema| schema.name.as_str()).collect::<Vec<_>>().join("\n");
    let output = CommandOutput::done(SchemaOutput { schemas: Some(schemas) }).with_page("schemas", page);
    let mut output = output.raw(text).fact("etag", etag);
    output.shape = Some(Shape::List("schemas"));
    Ok(output)
}

fn schema_names(catalog: Catalog) -> Vec<SchemaName> {
    let entry = |name: String, describes: String| SchemaName { name, describes };
    let mut names = vec![
        entry("agent".into(), "CLI envelope: every output in a pipe".into()),
        entry("standard".into(), "Standard envelope: output in files".into()),
        entry("error".into(), "Tool envelope of a failed call".into()),
    ];
    names
        .extend(Category::ALL.map(|category| {
            entry(category.name().into(), format!("Tool envelope {}", category.schema_id()))
        }));
    names.extend(
        catalog.iter().map(|spec| entry(spec.name(), format!("Input and output of '{}'", spec.cli_path()))),
    );
    names.push(entry(ROOT.name(), "Output of a call that names no command".into()));
    names
}

/// Finds a schema by address, id, envelope name, dotted path, command line path or tool name. Under its tool
/// name, a command has the inputs of the tool.
pub fn find_schema(context: &Context<'_>, name: &str) -> Result<Value, AppError> {
    let (catalog, settings) = (context.commands.catalog, &context.config.settings);
    let (prefix, modes) = (&settings.tool_prefix, settings.into());
    let short_name = name
        .strip_prefix(SCHEMA_URI)
        .or_else(|| name.strip_prefix("codex/v3.6/"))
        .map(|rest| rest.strip_suffix("/v1").unwrap_or(rest))
        .unwrap_or(name);
    match short_name {
        "agent" | "002" | "ResponseEnvelope" => return Ok(envelope_schema::agent()),
        "standard" | "004" | "StandardEnvelope" => return Ok(envelope_schema::standard()),
        "error" => return Ok(envelope_schema::tool_error()),
        _ => {}
    }
    if let Some(category) = Category::ALL.into_iter().find(|category| category.name() == short_name) {
        return Ok(envelope_schema::tool(category));
    }
    if let Some(spec) = catalog.iter().find(|spec| spec.is_tool() && spec.tool_name(prefix) == short_name) {
        return Ok(command_schema(spec, Surface::Server, modes));
    }
    let matches_name = |spec: &&'static CommandSpec| {
        [spec.name(), spec.cli_path(), spec.snake_name()].iter().any(|name| name == short_name)
    };
    match catalog.iter().chain([&ROOT]).find(matches_name) {
        Some(spec) => Ok(command_schema(spec, context.surface, modes)),
        None => Err(not_found(catalog, name)),
    }
}

/// Input and output schema of one command. The output is the whole answer, in each envelope that the surface
/// prints.
fn command_schema(spec: &CommandSpec, surface: Surface, modes: ModeSettings) -> Value {
    let envelopes: &[(&str, Envelope)] = match surface {
        Surface::CommandLine => {
            &[("cli", Envelope::Agent), ("standard", Envelope::Standard), ("tool", Envelope::Tool)]
        }
        Surface::Server => &[("tool", Envelope::Tool)],
    };
    let output: Map<String, Value> = envelopes
        .iter()
        .filter_map(|(name, envelope)| Some(((*name).to_owned(), answer_schema(*envelope, spec)?)))
        .collect();
    json!({
        "command": spec.name(),
        "input": spec.inputs().published_schema(surface, modes),
        "output": output,
    })
}

fn not_found(catalog: Catalog, name: &str) -> AppError {
    let names = schema_names(catalog);
    let nearest =
        delegator_domain::similar_names::nearest(name, names.iter().map(|schema| schema.name.as_str()));
    let message = format!("There is no schema '{name}'.");
    let problem = Problem::new(ErrorCode::NotFound, "name", "there is no such schema").value(name.into());
    AppError { message, ..problem.into() }.context("name", name).suggest_name(
        nearest,
        "Run {call} to list the names.",
        NextCall::new(&["schema"]),
    )
}

/// The schema that the call names.
#[derive(Debug, Clone, Serialize)]
struct NamedSchema(Value);

impl CommandData for NamedSchema {
    /// Compact: the size limit of a tool response counts indentation, and a truncated schema is a wrong one.
    fn document(&self) -> Document {
        Document::default().block(Block::Verbatim(self.0.to_string()))
    }
}

impl CommandData for SchemaOutput {
    fn document(&self) -> Document {
        let row = |schema: &SchemaName| vec![schema.name.clone(), schema.describes.clone()];
        let rows = self.schemas.iter().flatten().map(row).collect();
        Document::titled("Schemas").block(Block::Table { columns: vec!["name", "describes"], rows })
    }
}
