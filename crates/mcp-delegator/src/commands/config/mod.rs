//! The configuration in force, and the edits of the user's own file.

pub mod edit;
pub mod get;
pub mod path;
pub mod set;
pub mod show;
pub mod unset;

use delegator_config::user_edit::{EditError, UserEdit};
use delegator_config::{KeyPath, Source};

use crate::commands::prelude::*;
use crate::output::documents::document::scalar;

/// A setting of the user's file, after the command.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ChangedSetting {
    pub key: String,
    /// The value that is in force; null if there is none.
    pub value: Value,
    /// default, user_config, project, environment or flag.
    pub source: Option<&'static str>,
    /// The user's configuration file.
    pub file: String,
    /// The file is or would be changed.
    pub is_changed: bool,
    #[serde(skip)]
    is_planned: bool,
}

/// Writes the edit, unless it is only a plan. `wanted` is the source whose value the user expects afterwards.
pub fn finish(
    key: &str,
    edit: Result<UserEdit, EditError>,
    wanted: Option<Source>,
    dry_run: bool,
) -> Result<CommandOutput, AppError> {
    let edit = edit?;
    let path = KeyPath::parse(key).ok();
    let setting = path
        .as_ref()
        .and_then(|path| edit.config.sourced().iter().find(|setting| setting.key.name == path.setting.name));
    let shown = setting.map(show::to_setting);
    let value = path.as_ref().zip(shown.as_ref()).map(|(path, shown)| path.value_in(&shown.value));
    let overriding = setting.filter(|setting| wanted.is_some_and(|wanted| setting.origin.source() > wanted));
    let overriding = overriding.map(|setting| {
        let message = format!("{} overrides the value of {key} in the file", setting.origin);
        Warning::new(WarningCode::IgnoredValue, message)
    });
    let data = ChangedSetting {
        key: key.to_owned(),
        value: value.unwrap_or_default(),
        source: shown.map(|shown| shown.source),
        file: edit.path.display().to_string(),
        is_changed: edit.is_change(),
        is_planned: dry_run,
    };
    let remaining: Vec<_> = edit.remaining.iter().flat_map(|error| error.ignored_values()).collect();
    if !dry_run {
        edit.write()?;
    }
    let output = CommandOutput { dry_run, ..CommandOutput::done(data) };
    Ok(output.fact("dry_run", dry_run).warn(overriding).warn(remaining))
}

impl CommandData for ChangedSetting {
    fn document(&self) -> Document {
        let source = self.source.filter(|source| *source != Source::UserConfig.name());
        let source = source.map(|source| format!(" ({source})")).unwrap_or_default();
        let value = if self.value.is_null() { "not set".to_owned() } else { scalar(&self.value) };
        Document::default().block(Block::facts([
            (self.key.as_str(), Some(format!("{value}{source}"))),
            ("file", Some(self.file.clone())),
            (if self.is_planned { "would change" } else { "changed" }, Some(self.is_changed.to_string())),
        ]))
    }
}
