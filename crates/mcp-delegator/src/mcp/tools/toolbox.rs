//! The tools that a server offers, and their names.
//!
//! The user selects them by toolset and by name. An unknown name is an error, never ignored.

use std::sync::Arc;

use delegator_config::{Settings, ToolFormat};
use delegator_domain::similar_names;
use rmcp::model::{Tool, object};

use crate::error::{AppError, ErrorCode, Problem, suggest_nearest};
use crate::mcp::codex_compat::{self, CompatTool};
use crate::output::envelopes::schema as envelope_schema;
use crate::spec::catalog::Catalog;
use crate::spec::formats::Format;
use crate::spec::tool_schema::{ToolListSettings, tool_definition};
use crate::spec::{CommandSpec, ServedTools};

#[derive(Debug, Clone)]
pub struct Toolbox {
    served: Vec<&'static CommandSpec>,
    pub names: Arc<ServedTools>,
    compat: Vec<CompatTool>,
    pub output_schemas: bool,
    pub settings: ToolListSettings,
}

const TOOLSETS: [&str; 6] = ["local", "cloud", "registry", "worktree", "extra", codex_compat::TOOLSET];
const DEFAULT_TOOLSETS: [&str; 3] = ["local", "cloud", "registry"];

impl Toolbox {
    /// Refuses unknown names; all of them are reported together.
    pub fn select(catalog: Catalog, selection: &Settings) -> Result<Toolbox, AppError> {
        let all: Vec<&'static CommandSpec> = catalog.iter().filter(|spec| spec.is_tool()).collect();
        let mut problems = Vec::new();
        for toolset in &selection.toolsets {
            if !TOOLSETS.contains(&toolset.as_str()) {
                problems.push(unknown_name("toolsets", toolset, TOOLSETS.into_iter()));
            }
        }
        let compat = CompatTool::ALL.map(|tool| tool.name().to_owned());
        let names: Vec<String> = all.iter().map(|spec| spec.snake_name()).chain(compat).collect();
        for (field, given) in [("tools", &selection.tools), ("exclude_tools", &selection.exclude_tools)] {
            for name in given {
                if !names.iter().any(|known| matches_name(name, known, &selection.tool_prefix)) {
                    problems.push(unknown_name(field, name, names.iter().map(String::as_str)));
                }
            }
        }
        if !problems.is_empty() {
            return Err(AppError::from_problems(problems));
        }
        let served: Vec<_> = all.into_iter().filter(|spec| is_served(spec, selection)).collect();
        let compat: Vec<_> =
            CompatTool::ALL.into_iter().filter(|tool| is_compat_tool_served(*tool, selection)).collect();
        if served.is_empty() && compat.is_empty() {
            return Err(AppError::new(ErrorCode::InvalidValue, "The selection contains no tool to serve.")
                .suggest("Select more toolsets, or exclude fewer tools."));
        }
        let names = served.iter().map(|spec| spec.snake_name()).collect();
        Ok(Toolbox {
            served,
            names: Arc::new(ServedTools { prefix: selection.tool_prefix.clone(), names }),
            compat,
            output_schemas: selection.output_schemas,
            settings: ToolListSettings {
                prefix: selection.tool_prefix.clone(),
                default_format: match selection.default_format {
                    ToolFormat::Json => Format::Json,
                    ToolFormat::Markdown => Format::Markdown,
                },
                modes: selection.into(),
                agents: Vec::new(),
            },
        })
    }

    pub fn prefix(&self) -> &str {
        &self.names.prefix
    }

    pub fn find(&self, name: &str) -> Option<&'static CommandSpec> {
        self.served.iter().copied().find(|spec| spec.tool_name(self.prefix()) == name)
    }

    pub fn serves_only_compat(&self) -> bool {
        self.served.is_empty()
    }

    /// Finds a tool of Codex's former server; their names have no prefix.
    pub fn find_compat(&self, name: &str) -> Option<CompatTool> {
        self.compat.iter().copied().find(|tool| tool.name() == name)
    }

    /// Whether a tool is served, by its name without the prefix.
    pub fn serves(&self, name: &str) -> bool {
        self.names.prefixed_name(name).is_some()
    }

    pub fn nearest(&self, name: &str) -> Option<String> {
        let ours = self.served.iter().map(|spec| spec.tool_name(self.prefix()));
        let names: Vec<String> = ours.chain(self.compat.iter().map(|tool| tool.name().to_owned())).collect();
        similar_names::nearest(name, names.iter().map(String::as_str)).map(str::to_owned)
    }

    pub fn list(&self) -> Vec<Tool> {
        let ours = self.served.iter().filter_map(|spec| self.tool(spec));
        ours.chain(self.compat.iter().map(|tool| tool.definition())).collect()
    }

    fn tool(&self, spec: &'static CommandSpec) -> Option<Tool> {
        let definition = tool_definition(spec, &self.settings);
        let mut tool: Tool = serde_json::from_value(definition).ok()?;
        if self.output_schemas {
            tool.output_schema = Some(Arc::new(object(envelope_schema::tool(spec.category))));
        }
        Some(tool)
    }
}

fn is_served(spec: &CommandSpec, selection: &Settings) -> bool {
    let toolset = spec.toolset.name().unwrap_or_default();
    is_selected(toolset, &spec.snake_name(), selection) && (!selection.read_only || spec.is_safe())
}

/// Both tools start tasks, so a read-only server has neither.
fn is_compat_tool_served(tool: CompatTool, selection: &Settings) -> bool {
    is_selected(codex_compat::TOOLSET, tool.name(), selection) && !selection.read_only
}

fn is_selected(toolset: &str, name: &str, selection: &Settings) -> bool {
    let in_toolset = match selection.toolsets.as_slice() {
        [] => DEFAULT_TOOLSETS.contains(&toolset),
        // `extra` is everything besides the default tools.
        chosen => chosen.iter().any(|name| name == toolset || (name == "extra" && toolset == "worktree")),
    };
    let is_named =
        |names: &[String]| names.iter().any(|given| matches_name(given, name, &selection.tool_prefix));
    let chosen = if selection.tools.is_empty() { in_toolset } else { is_named(&selection.tools) };
    chosen && !is_named(&selection.exclude_tools)
}

/// Whether the given name, with or without the prefix, is this tool.
fn matches_name(given: &str, name: &str, prefix: &str) -> bool {
    given == name || given.strip_prefix(prefix) == Some(name)
}

fn unknown_name<'a>(field: &str, given: &str, known: impl Iterator<Item = &'a str> + Clone) -> Problem {
    Problem::invalid(field, format!("{given} is unknown"))
        .value(given.into())
        .suggest(Some(suggest_nearest(given, known)))
}
