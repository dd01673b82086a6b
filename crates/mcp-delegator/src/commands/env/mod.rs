//! Commands for the environments file: add, remove, check. `delegator-config` defines its format.

pub mod add;
pub mod check;
pub mod remove;

use delegator_domain::environment::Environment;

use crate::commands::prelude::*;
use crate::output::data::registry::{ChangedEnvironment, EnvironmentData};

impl EnvironmentData {
    fn facts(&self) -> [(&'static str, String); 6] {
        [
            ("id", self.id.clone()),
            ("name", self.name.clone()),
            ("repository", self.repository.clone()),
            ("tech stack", self.tech_stack.clone()),
            ("provider", self.provider.to_owned()),
            ("created at", cell(self.created_at.as_ref())),
        ]
    }
}

fn edit_output(environment: &Environment, file: &Path, message: String) -> CommandOutput {
    CommandOutput::done(ChangedEnvironment { environment: environment.into() })
        .fact("source", file.display().to_string())
        .message(message)
}

impl CommandData for ChangedEnvironment {
    fn document(&self) -> Document {
        let facts =
            self.environment.facts().map(|(name, value)| (name, Some(value).filter(|value| value != "-")));
        Document::default().block(Block::facts(facts))
    }
}
