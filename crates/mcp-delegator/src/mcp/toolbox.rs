//! Which tools are served, and under which names.

use std::sync::Arc;

use delegator_domain::similar_names;
use rmcp::model::{Tool, object};

use super::codex_compat::{self, CompatTool};
use crate::cli::globals::Format;
use crate::error::{AppError, ErrorCode, Problem, suggest_nearest};
use crate::spec::{self, CommandSpec, ServedTools, Toolset, mcp_tool};
use crate::views::envelope_schema;

/// What the user chose.
#[derive(Debug, Clone)]
pub struct ToolSelection {
    pub prefix: String,
    pub toolsets: Vec<String>,
    /// Only these, if any are named.
    pub tools: Vec<String>,
    pub exclude_tools: Vec<String>,
    pub read_only: bool,
    pub output_schemas: bool,
    /// How calls are answered that do not say.
    pub default_format: Format,
}

/// The tools of one server.
#[derive(Debug, Clone)]
pub struct Toolbox {
    served: Vec<&'static CommandSpec>,
    names: Arc<ServedTools>,
    compat: Vec<CompatTool>,
    output_schemas: bool,
    default_format: Format,
}

const TOOLSETS: [&str; 5] = ["local", "cloud", "registry", "extra", codex_compat::TOOLSET];
const DEFAULT_TOOLSETS: [&str; 3] = ["local", "cloud", "registry"];

impl Toolbox {
    /// Every name that is not known is refused, all of them at once.
    pub fn select(choice: &ToolSelection) -> Result<Toolbox, AppError> {
        let all: Vec<&'static CommandSpec> =
            spec::all().iter().copied().filter(|spec| can_be_tool(spec)).collect();
        let mut problems = Vec::new();
        for toolset in &choice.toolsets {
            if !TOOLSETS.contains(&toolset.as_str()) {
                problems.push(unknown_name("toolsets", toolset, TOOLSETS.into_iter()));
            }
        }
        let compat = CompatTool::ALL.map(|tool| tool.name().to_owned());
        let names: Vec<String> = all.iter().map(|spec| spec.snake_name()).chain(compat).collect();
        for (field, given) in [("tools", &choice.tools), ("exclude_tools", &choice.exclude_tools)] {
            for name in given {
                if !names.iter().any(|known| matches_name(name, known, &choice.prefix)) {
                    problems.push(unknown_name(field, name, names.iter().map(String::as_str)));
                }
            }
        }
        if !problems.is_empty() {
            return Err(AppError::from_problems(problems));
        }
        let served: Vec<_> = all.into_iter().filter(|spec| is_served(spec, choice)).collect();
        let compat: Vec<_> =
            CompatTool::ALL.into_iter().filter(|tool| is_compat_tool_served(*tool, choice)).collect();
        if served.is_empty() && compat.is_empty() {
            return Err(AppError::new(ErrorCode::InvalidValue, "No tool is left to serve.")
                .suggest("Serve more toolsets, or exclude fewer tools."));
        }
        let names = served.iter().map(|spec| spec.snake_name()).collect();
        Ok(Toolbox {
            served,
            names: Arc::new(ServedTools { prefix: choice.prefix.clone(), names }),
            compat,
            output_schemas: choice.output_schemas,
            default_format: choice.default_format,
        })
    }

    pub fn prefix(&self) -> &str {
        &self.names.prefix
    }

    pub fn names(&self) -> &Arc<ServedTools> {
        &self.names
    }

    pub fn default_format(&self) -> Format {
        self.default_format
    }

    /// Whether the list declares what answers look like.
    pub fn declares_output_schemas(&self) -> bool {
        self.output_schemas
    }

    /// The command behind a tool's name.
    pub fn find(&self, name: &str) -> Option<&'static CommandSpec> {
        self.served.iter().copied().find(|spec| spec.tool_name(self.prefix()) == name)
    }

    /// Whether none of our own tools is served.
    pub fn serves_only_compat(&self) -> bool {
        self.served.is_empty()
    }

    /// One of the tools of Codex's former server; their names have no prefix.
    pub fn find_compat(&self, name: &str) -> Option<CompatTool> {
        self.compat.iter().copied().find(|tool| tool.name() == name)
    }

    /// By the name without its prefix.
    pub fn serves(&self, name: &str) -> bool {
        self.names.prefixed_name(name).is_some()
    }

    /// The name nearest to one that is not served.
    pub fn nearest(&self, name: &str) -> Option<String> {
        let ours = self.served.iter().map(|spec| spec.tool_name(self.prefix()));
        let names: Vec<String> = ours.chain(self.compat.iter().map(|tool| tool.name().to_owned())).collect();
        similar_names::nearest(name, names.iter().map(String::as_str)).map(str::to_owned)
    }

    /// What `tools/list` says.
    pub fn list(&self) -> Vec<Tool> {
        let ours = self.served.iter().filter_map(|spec| self.tool(spec));
        ours.chain(self.compat.iter().map(|tool| tool.definition())).collect()
    }

    fn tool(&self, spec: &'static CommandSpec) -> Option<Tool> {
        let definition = mcp_tool::tool_definition(spec, self.prefix(), self.default_format);
        let mut tool: Tool = serde_json::from_value(definition).ok()?;
        if self.output_schemas {
            tool.output_schema = Some(Arc::new(object(envelope_schema::tool(spec.category))));
        }
        Some(tool)
    }
}

/// Everything a program can call without a person or a terminal.
fn can_be_tool(spec: &CommandSpec) -> bool {
    let beyond_the_fifteen = spec.toolset == Toolset::Extra;
    spec.toolset.name().is_some()
        && !spec.requires_person
        && !spec.streams
        && (spec.is_available() || !beyond_the_fifteen)
}

fn is_served(spec: &CommandSpec, choice: &ToolSelection) -> bool {
    let toolset = spec.toolset.name().unwrap_or_default();
    is_selected(toolset, &spec.snake_name(), choice) && (!choice.read_only || spec.is_safe())
}

/// Both start tasks.
fn is_compat_tool_served(tool: CompatTool, choice: &ToolSelection) -> bool {
    is_selected(codex_compat::TOOLSET, tool.name(), choice) && !choice.read_only
}

fn is_selected(toolset: &str, name: &str, choice: &ToolSelection) -> bool {
    let in_toolset = match choice.toolsets.as_slice() {
        [] => DEFAULT_TOOLSETS.contains(&toolset),
        chosen => chosen.iter().any(|name| name == toolset),
    };
    let is_named = |names: &[String]| names.iter().any(|given| matches_name(given, name, &choice.prefix));
    let chosen = if choice.tools.is_empty() { in_toolset } else { is_named(&choice.tools) };
    chosen && !is_named(&choice.exclude_tools)
}

/// A tool may be named with its prefix or without.
fn matches_name(given: &str, name: &str, prefix: &str) -> bool {
    given == name || given.strip_prefix(prefix) == Some(name)
}

fn unknown_name<'a>(field: &str, given: &str, known: impl Iterator<Item = &'a str> + Clone) -> Problem {
    Problem::new(ErrorCode::InvalidValue, field, format!("{given} is not known"))
        .suggest(Some(suggest_nearest(given, known)))
}
