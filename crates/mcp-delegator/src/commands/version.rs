//! `version`: the version, for people and programs. `--version` prints the same, as text also in a pipe.

use crate::commands::prelude::*;
use crate::output::envelopes::tool as tool_envelope;
use crate::spec::NoInputs;
use crate::spec::version::{PRODUCT_VERSION, PROGRAM};

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Version {
    pub name: &'static str,
    pub version: &'static str,
    pub envelope_version: &'static str,
}

pub const SPEC: CommandSpec = CommandSpec {
    shape: Shape::Show("version"),
    toolset: Toolset::Hidden,
    config: ConfigUse::Unused,
    ..CommandSpec::read_only::<NoInputs, Version>(&["version"], "Show the version")
};

pub fn run(_: &Context<'_>, _: NoInputs) -> Result<CommandOutput, AppError> {
    let version = Version {
        name: PROGRAM,
        version: PRODUCT_VERSION,
        envelope_version: tool_envelope::ENVELOPE_VERSION,
    };
    Ok(CommandOutput::done(version))
}

impl CommandData for Version {
    fn document(&self) -> Document {
        Document::default().text(format!("{} {}", self.name, self.version))
    }
}
