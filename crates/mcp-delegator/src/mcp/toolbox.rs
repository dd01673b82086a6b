//! Which tools are served, and under which names.

use std::sync::Arc;

use delegator_domain::names;
use rmcp::model::Tool;
use serde_json::{Map, Value};

use crate::cli::globals::Format;
use crate::fault::{AppError, ErrorCode, Problem};
use crate::registry::{self, CommandSpec, Toolset, mcp_tool};
use crate::views::envelope_schema;

/// What the user chose.
#[derive(Debug, Clone)]
pub struct Choice {
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
    prefix: String,
    served: Vec<&'static CommandSpec>,
    output_schemas: bool,
    default_format: Format,
}

const TOOLSETS: [&str; 4] = ["local", "cloud", "registry", "extra"];
const DEFAULT_TOOLSETS: [&str; 3] = ["local", "cloud", "registry"];

impl Toolbox {
    /// Every name that is not known is refused, all of them at once.
    pub fn of(choice: &Choice) -> Result<Toolbox, AppError> {
        let all: Vec<&'static CommandSpec> =
            registry::all().iter().copied().filter(|spec| is_a_tool(spec)).collect();
        let mut problems = Vec::new();
        for toolset in &choice.toolsets {
            if !TOOLSETS.contains(&toolset.as_str()) {
                problems.push(unknown("toolsets", toolset, TOOLSETS.into_iter()));
            }
        }
        let names: Vec<String> = all.iter().map(|spec| spec.snake()).collect();
        for (field, given) in [("tools", &choice.tools), ("exclude_tools", &choice.exclude_tools)] {
            for name in given {
                if !names.iter().any(|known| *known == bare(name, &choice.prefix)) {
                    problems.push(unknown(field, name, names.iter().map(String::as_str)));
                }
            }
        }
        if !problems.is_empty() {
            return Err(AppError::of_problems(problems));
        }
        let served: Vec<_> = all.into_iter().filter(|spec| is_served(spec, choice)).collect();
        if served.is_empty() {
            return Err(AppError::new(ErrorCode::InvalidValue, "No tool is left to serve.")
                .suggest("Serve more toolsets, or exclude fewer tools."));
        }
        Ok(Toolbox {
            prefix: choice.prefix.clone(),
            served,
            output_schemas: choice.output_schemas,
            default_format: choice.default_format,
        })
    }

    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    pub fn default_format(&self) -> Format {
        self.default_format
    }

    /// Whether the list declares what answers look like.
    pub fn declares_answers(&self) -> bool {
        self.output_schemas
    }

    /// The command behind a tool's name.
    pub fn find(&self, name: &str) -> Option<&'static CommandSpec> {
        self.served.iter().copied().find(|spec| spec.tool_name(&self.prefix) == name)
    }

    /// By the name without its prefix.
    pub fn serves(&self, name: &str) -> bool {
        self.served.iter().any(|served| served.snake() == name)
    }

    /// The name nearest to one that is not served.
    pub fn nearest(&self, name: &str) -> Option<String> {
        let names: Vec<String> = self.served.iter().map(|spec| spec.tool_name(&self.prefix)).collect();
        names::nearest(name, names.iter().map(String::as_str)).map(str::to_owned)
    }

    /// What `tools/list` says.
    pub fn list(&self) -> Vec<Tool> {
        self.served.iter().filter_map(|spec| self.tool(spec)).collect()
    }

    fn tool(&self, spec: &'static CommandSpec) -> Option<Tool> {
        let definition = mcp_tool::tool_definition(spec, &self.prefix, self.default_format);
        let mut tool: Tool = serde_json::from_value(definition).ok()?;
        if self.output_schemas {
            tool.output_schema = object(envelope_schema::tool(spec.category)).map(Arc::new);
        }
        Some(tool)
    }
}

/// Everything a program can call without a person or a terminal.
fn is_a_tool(spec: &CommandSpec) -> bool {
    let beyond_the_fifteen = spec.toolset == Toolset::Extra;
    spec.toolset.name().is_some()
        && !spec.requires_person
        && !spec.streams
        && (spec.is_available() || !beyond_the_fifteen)
}

fn is_served(spec: &CommandSpec, choice: &Choice) -> bool {
    let toolset = spec.toolset.name().unwrap_or_default();
    let in_toolset = match choice.toolsets.as_slice() {
        [] => DEFAULT_TOOLSETS.contains(&toolset),
        chosen => chosen.iter().any(|name| name == toolset),
    };
    let is_named = |names: &[String]| names.iter().any(|name| bare(name, &choice.prefix) == spec.snake());
    let chosen = if choice.tools.is_empty() { in_toolset } else { is_named(&choice.tools) };
    chosen && !is_named(&choice.exclude_tools) && (!choice.read_only || spec.is_safe())
}

/// A tool may be named with its prefix or without.
fn bare<'a>(name: &'a str, prefix: &str) -> &'a str {
    name.strip_prefix(prefix).unwrap_or(name)
}

fn unknown<'a>(field: &str, given: &str, known: impl Iterator<Item = &'a str> + Clone) -> Problem {
    let advice = match names::nearest(given, known.clone()) {
        Some(name) => format!("Did you mean {name}?"),
        None => format!("There are {}.", known.collect::<Vec<_>>().join(", ")),
    };
    Problem::new(ErrorCode::InvalidValue, field, format!("{given} is not known")).suggest(Some(advice))
}

fn object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(object) => Some(object),
        _ => None,
    }
}
