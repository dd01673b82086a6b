//! The guide that gives an environment access to GitHub: create a token with minimal permissions, store it,
//! verify it with a task.

use schemars::JsonSchema;
use serde::Serialize;

use crate::spec::shell::shell_word;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenLocation {
    /// The settings of hosted Codex.
    Web,
    /// The machines our own workers run on.
    Workers,
}

#[derive(Debug, Clone)]
pub struct Guide {
    pub env_id: String,
    /// Whether the environment file contains the environment already.
    pub is_known: bool,
    pub location: TokenLocation,
    /// `https://github.com/owner/name`.
    pub repository: String,
    /// `owner/name`.
    pub name: String,
    pub stack: String,
    pub setup: String,
    pub maintenance: String,
    /// Name and email address for commits, quoted for a shell.
    pub identity: (String, String),
    /// Whether both were given; else they are examples.
    pub has_identity: bool,
}

const TOKEN_PAGE: &str = "https://github.com/settings/personal-access-tokens/new";
const ENVIRONMENTS_PAGE: &str = "https://chatgpt.com/codex/settings/environments";

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GithubGuide {
    /// All steps as Markdown.
    pub guide: String,
    pub steps: Vec<GuideStep>,
    pub token_permissions: TokenPermissions,
    pub verification_task: String,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GuideStep {
    #[schemars(range(min = 1))]
    pub step: u8,
    pub title: &'static str,
    pub instructions: String,
    #[schemars(extend("x-optional" = true))]
    pub paste: Vec<Paste>,
}

/// A text to paste, and its destination.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Paste {
    #[serde(rename = "where")]
    pub to: &'static str,
    pub text: String,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TokenPermissions {
    pub contents: &'static str,
    pub pull_requests: &'static str,
    pub metadata: &'static str,
}

impl Guide {
    pub fn data(&self) -> GithubGuide {
        let steps = vec![self.token(), self.environment(), self.verification()];
        GithubGuide {
            guide: markdown(&steps),
            steps,
            token_permissions: TokenPermissions {
                contents: "write",
                pull_requests: "write",
                metadata: "read",
            },
            verification_task: self.task(),
        }
    }

    fn token(&self) -> GuideStep {
        let name = &self.name;
        GuideStep {
            step: 1,
            title: "Create a fine-grained token",
            instructions: format!(
                "Visit {TOKEN_PAGE} and create a token for this repository only.\n\
                 Resource owner: {}. Repository access: only select repositories, {name}. Expiration: 90 days or less.\n\
                 Repository permissions: Contents read and write, Pull requests read and write; Metadata read-only is added \
                 automatically. Add Workflows read and write only if tasks must change .github/workflows.\n\
                 The token is shown only once. Store it as described in step 2, never in a task or a chat.",
                name.split('/').next().unwrap_or_default(),
            ),
            paste: Vec::new(),
        }
    }

    fn environment(&self) -> GuideStep {
        let (mut instructions, mut paste) = match self.location {
            TokenLocation::Web => self.web_step(),
            TokenLocation::Workers => self.worker_step(),
        };
        if !self.has_identity {
            instructions.push_str("\nReplace the name and the e-mail address for commits by your own.");
        }
        if !self.is_known {
            instructions.push_str(
                "\nThen add the environment to this machine's configuration, so that cloud tasks find it.",
            );
            paste.push(Paste { to: "A shell on this machine", text: self.command() });
        }
        GuideStep { step: 2, title: "Configure the environment", instructions, paste }
    }

    fn web_step(&self) -> (String, Vec<Paste>) {
        let instructions = format!(
            "Visit {ENVIRONMENTS_PAGE} and create or open the environment of {}.\n\
             Secrets: add GITHUB_TOKEN with the token of step 1. Setup script and maintenance script: manual, as below.\n\
             Agent internet access: on, for github.com, if tasks must push by themselves.\n\
             The setup script stores the token where the agent's git finds it, so the agent can read it. Therefore it \
             must be valid for one repository only.",
            self.name
        );
        let paste = vec![
            Paste { to: "Setup script", text: self.setup.clone() },
            Paste { to: "Maintenance script", text: self.maintenance.clone() },
        ];
        (instructions, paste)
    }

    fn worker_step(&self) -> (String, Vec<Paste>) {
        let instructions = "The tasks of this environment run on your own workers, so there is no web page: the token is a secret \
                     of the worker. Run the lines below on every worker, as the worker's user; the first line reads the \
                     token from the terminal without showing it."
            .to_owned();
        let (user_name, user_email) = &self.identity;
        let text = format!(
            "(umask 077 && read -rs token && printf 'https://x-access-token:%s@github.com\\n' \"$token\" >>\"$HOME/.git-credentials\")\n\
             git config --global credential.https://github.com.helper store\n\
             git config --global user.name {user_name}\n\
             git config --global user.email {user_email}\n\
             git ls-remote {} HEAD\n",
            self.repository
        );
        (instructions, vec![Paste { to: "A shell on each worker", text }])
    }

    fn verification(&self) -> GuideStep {
        let text = format!(
            "mcp-delegator cloud submit {} --env-id {}\n",
            shell_word(&self.task()),
            shell_word(&self.env_id)
        );
        GuideStep {
            step: 3,
            title: "Verify",
            instructions: "Submit the verification task. If a branch and a pull request appear on GitHub, the setup works; \
                           close and delete both afterwards."
                .to_owned(),
            paste: vec![Paste { to: "A shell, or the submit tool", text }],
        }
    }

    fn task(&self) -> String {
        format!(
            "Test GitHub access to {}: create a branch access-check, add a file ACCESS-CHECK.md with the current date, \
             commit, push the branch and open a draft pull request.",
            self.name
        )
    }

    fn command(&self) -> String {
        format!(
            "mcp-delegator env add {} --name {} --repo-url {} --stack {}\n",
            shell_word(&self.env_id),
            shell_word(&self.name),
            self.repository,
            self.stack
        )
    }
}

fn markdown(steps: &[GuideStep]) -> String {
    let mut text = "# GitHub Integration Setup\n".to_owned();
    for step in steps {
        text.push_str(&format!("\n## Step {}: {}\n\n{}\n", step.step, step.title, step.instructions));
        for paste in &step.paste {
            let fenced = delegator_domain::terminal::fenced(&paste.text);
            text.push_str(&format!("\n{}:\n\n{fenced}\n", paste.to));
        }
    }
    text
}
