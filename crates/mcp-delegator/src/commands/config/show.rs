//! `config show`: every effective setting and its source.
//!
//! Values are those for a task in the current directory. Secret settings are replaced by a marker and never
//! printed. If the configuration is invalid, the command fails with its problems and still shows the values
//! that apply.

use delegator_config::{Config, ConfigWarning, Origin, SourcedSetting, UnknownSetting};
use delegator_domain::similar_names;

use crate::commands::prelude::*;
use crate::output::documents::document::scalar;
use crate::spec::paging::{Paging, paginate};

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct ConfigShow {
    /// Only this setting
    #[schemars(length(min = 1, max = 128), extend("x-markers" = [Marker::Positional]))]
    pub key: Option<String>,
    /// Only settings that differ from the default
    #[serde(default)]
    pub changed: bool,
    #[serde(flatten)]
    pub paging: Paging,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Settings {
    pub settings: Vec<Setting>,
    /// Path of the user's configuration file, if it exists.
    pub user_file: Option<String>,
    /// Path of the project file, if it exists.
    pub project_file: Option<String>,
    pub state_dir: Option<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Setting {
    pub key: &'static str,
    pub value: Value,
    pub default: Value,
    /// default, user_config, project, environment or flag.
    pub source: &'static str,
    /// The file and line, variable or flag that set it.
    pub origin: Option<String>,
    pub variable: Option<String>,
    pub description: &'static str,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Precedence: flags, environment variables, the project file, the user's file, defaults.",
    shape: Shape::List("settings"),
    config: ConfigUse::Reported,
    failures: &[ErrorCode::NotFound],
    examples: &[
        example("mcp-delegator config show", "all settings"),
        example("mcp-delegator config show max_mode", "one setting and where it comes from"),
    ],
    ..CommandSpec::read_only::<ConfigShow, Settings>(
        &["config", "show"],
        "Show every setting and where it comes from",
    )
};

pub fn run(context: &Context<'_>, input: ConfigShow) -> Result<CommandOutput, AppError> {
    let (config, added) = in_current_directory(context);
    if let Some(key) = &input.key
        && !config.sourced().iter().any(|setting| setting.key.name == key)
    {
        let known = config.sourced().iter().map(|setting| setting.key.name);
        let nearest = similar_names::nearest(key, known);
        return Err(UnknownSetting { name: key.clone(), nearest }.into());
    }
    let settings: Vec<Setting> = config
        .sourced()
        .iter()
        .filter(|setting| input.key.as_deref().is_none_or(|key| setting.key.name == key))
        .filter(|setting| !input.changed || setting.origin != Origin::Default)
        .map(to_setting)
        .collect();
    let query = json!({"command": "config.show", "key": input.key, "changed": input.changed});
    let (settings, page) = paginate(settings, &input.paging, &query)?;
    let text = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let data = Settings {
        settings,
        user_file: text(&config.user_file),
        project_file: text(&config.project_file),
        state_dir: text(&context.state_dir),
    };
    let error = context.config_error.map(|error| error.clone().into());
    let warnings = context.config.warnings.iter().chain(&added);
    Ok(CommandOutput::of(data, error).with_page("settings", page).warn(warnings))
}

pub fn to_setting(setting: &SourcedSetting) -> Setting {
    // Secret settings are hidden here, because the redactor may not recognise their values.
    let hide = |value: Value| {
        if setting.key.secret && !value.is_null() { "[REDACTED:config]".into() } else { value }
    };
    Setting {
        key: setting.key.name,
        value: hide(setting.value.clone()),
        default: setting.default.clone(),
        source: setting.origin.source().name(),
        origin: (setting.origin != Origin::Default).then(|| setting.origin.to_string()),
        variable: setting.key.variable(),
        description: setting.key.description,
    }
}

/// The settings for a task in the current directory, with the limits of its project file, and the warnings
/// that this adds. A broken project file is a warning: a user runs these commands to find out what is wrong.
pub fn in_current_directory(context: &Context<'_>) -> (Config, Vec<ConfigWarning>) {
    let directory = &context.process.current_dir;
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.clone());
    let (config, mut warnings) = match context.config.for_work_tree(&directory) {
        Ok(config) => (config.clone(), config.warnings),
        Err(error) => (context.config.clone(), error.into_warnings()),
    };
    warnings.retain(|warning| !context.config.warnings.contains(warning));
    (config, warnings)
}

impl CommandData for Settings {
    fn document(&self) -> Document {
        let row = |setting: &Setting| {
            let source = match &setting.origin {
                Some(origin) => format!("{} ({origin})", setting.source),
                None => setting.source.to_owned(),
            };
            vec![setting.key.to_owned(), scalar(&setting.value), source]
        };
        let rows = self.settings.iter().map(row).collect();
        Document::default().block(Block::Table { columns: vec!["setting", "value", "source"], rows }).block(
            Block::facts([
                ("user file", self.user_file.clone()),
                ("project file", self.project_file.clone()),
                ("state dir", self.state_dir.clone()),
            ]),
        )
    }
}
