//! `cloud github-setup`: a guide to give an environment access to a repository.
//!
//! It returns instructions in three steps. It calls nothing and changes nothing: the access token belongs to
//! the user and must not pass through this program or a model.

use delegator_config::environments::{self, EnvironmentsError};
use delegator_domain::environment::Environment;
use delegator_domain::task::Provider;

use crate::commands::cloud::environment_template::{Stack, Template, USER_EMAIL, USER_NAME};
use crate::commands::prelude::*;
use crate::output::documents::github_guide::{GithubGuide, Guide, TokenLocation};
use crate::spec::shell::shell_word;

const REPOSITORY_URL: &str = r"^https://github\.com/[0-9A-Za-z_.-]+/[0-9A-Za-z_.-]+/?$";

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[allow(rustdoc::bare_urls, reason = "the doc comment is also the help text, which has no Markdown links")]
pub struct GithubSetup {
    /// https://github.com/owner/name
    #[schemars(regex(pattern = REPOSITORY_URL), extend("x-markers" = [Marker::Positional, Marker::FormerName("repo_url".into())]))]
    pub repository: String,
    /// Technology stack
    #[schemars(extend("x-markers" = [Marker::SelfExplanatory, Marker::FormerName("stack".into())]))]
    pub tech_stack: Stack,
    /// Name for commits
    #[schemars(length(min = 1, max = 128), extend("x-markers" = [Marker::SelfExplanatory]))]
    pub git_user_name: Option<String>,
    /// Email for commits
    #[schemars(regex(pattern = r"^[^@\s]+@[^@\s]+$"), extend("x-markers" = [Marker::SelfExplanatory]))]
    pub git_user_email: Option<String>,
    /// Environment id
    #[schemars(length(min = 1, max = 128), extend("x-markers" = [Marker::SelfExplanatory]))]
    pub env_id: Option<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    shape: Shape::Show("guide"),
    toolset: Toolset::Cloud,
    ..CommandSpec::read_only::<GithubSetup, GithubGuide>(
        &["cloud", "github-setup"],
        "Guide: give an environment access to a repository",
    )
};

pub fn run(context: &Context<'_>, input: GithubSetup) -> Result<CommandOutput, AppError> {
    let repository = input.repository.trim_end_matches('/').trim_end_matches(".git").to_owned();
    let (known, warning) = match &input.env_id {
        None => (None, None),
        Some(id) => find_environment(context, id, &repository)?,
    };
    let name = repository.trim_start_matches("https://github.com/").to_owned();
    let template = Template::for_stack(input.tech_stack);
    let user_name = input.git_user_name.as_deref().unwrap_or(USER_NAME);
    let user_email = input.git_user_email.as_deref().unwrap_or(USER_EMAIL);
    let guide = Guide {
        env_id: match (&known, &input.env_id) {
            (Some(known), _) => known.id.clone(),
            (None, Some(id)) => id.clone(),
            (None, None) => format!("env_{}", name.split('/').next_back().unwrap_or("project")),
        },
        is_known: known.is_some(),
        location: match known.map(|known| known.provider) {
            Some(Provider::Fleet) => TokenLocation::Workers,
            Some(Provider::CodexCloud) | None => TokenLocation::Web,
        },
        setup: template.map(|template| template.setup_script(user_name, user_email)).unwrap_or_default(),
        maintenance: template.map(Template::maintenance_script).unwrap_or_default(),
        identity: (shell_word(user_name), shell_word(user_email)),
        has_identity: input.git_user_name.is_some() && input.git_user_email.is_some(),
        repository,
        name,
        stack: input.tech_stack.name().to_owned(),
    };
    Ok(CommandOutput::done(guide.data())
        .fact("repository", guide.repository.as_str())
        .fact("tech_stack", input.tech_stack.name())
        .fact("env_id", guide.env_id.as_str())
        .warn(warning))
}

/// Finds the environment. An unknown one is only a warning, because the guide explains how to add it.
fn find_environment(
    context: &Context<'_>,
    id: &str,
    repository: &str,
) -> Result<(Option<Environment>, Option<Warning>), AppError> {
    let environments = match environments::read(&sources(context.process)) {
        Ok(environments) => environments,
        Err(EnvironmentsError::Missing { path }) => {
            let message = format!("there is no environment '{id}': {} does not exist", path.display());
            return Ok((None, Some(Warning::new(WarningCode::UnknownEnvironment, message))));
        }
        Err(error) => return Err(error.into()),
    };
    let Some(found) = environments.find(id) else {
        let hint = environments.nearest(id).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        let message = format!("there is no environment '{id}' in {}{hint}", environments.file.display());
        return Ok((None, Some(Warning::new(WarningCode::UnknownEnvironment, message))));
    };
    let known_url = found.repo_url.trim_end_matches('/').trim_end_matches(".git");
    let differs = (!known_url.eq_ignore_ascii_case(repository)).then(|| {
        let message = format!("the environment {} uses another repository: {}", found.id, found.repo_url);
        Warning::new(WarningCode::OtherRepository, message)
    });
    Ok((Some(found.clone()), differs))
}

impl CommandData for GithubGuide {
    fn document(&self) -> Document {
        let mut document = Document::titled("GitHub access");
        for step in &self.steps {
            document =
                document.text(format!("Step {}: {}", step.step, step.title)).text(step.instructions.clone());
            for paste in &step.paste {
                document = document.text(format!("{}:", paste.to)).block(Block::Verbatim(paste.text.clone()));
            }
        }
        document.text(format!("Verification task: {}", self.verification_task))
    }
}
