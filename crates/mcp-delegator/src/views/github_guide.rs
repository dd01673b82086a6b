//! How an environment comes to its GitHub access, in words: the token with the least rights that work, the place to put
//! it, and a task that proves it.

use serde_json::{Value, json};

use super::shell_word;

/// Where the token is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenLocation {
    /// The settings of hosted Codex.
    Web,
    /// The machines our own workers run on.
    Workers,
}

/// Everything the guide depends on.
#[derive(Debug, Clone)]
pub struct Guide {
    pub env_id: String,
    /// The environment stands in the file already.
    pub is_known: bool,
    pub location: TokenLocation,
    /// `https://github.com/owner/name`.
    pub repository: String,
    /// `owner/name`.
    pub name: String,
    pub stack: String,
    pub setup: String,
    pub maintenance: String,
    /// Name and address for commits, as a shell takes them.
    pub identity: (String, String),
}

const TOKEN_PAGE: &str = "https://github.com/settings/personal-access-tokens/new";
const ENVIRONMENTS_PAGE: &str = "https://chatgpt.com/codex/settings/environments";

/// Something to copy, and where it goes.
struct Paste {
    to: &'static str,
    text: String,
}

struct GuideStep {
    title: &'static str,
    instructions: String,
    paste: Vec<Paste>,
}

impl Guide {
    pub fn to_value(&self) -> Value {
        let steps = [self.token(), self.environment(), self.verification()];
        let numbered: Vec<Value> = steps
            .iter()
            .zip(1..)
            .map(|(step, number)| {
                let paste: Vec<Value> =
                    step.paste.iter().map(|paste| json!({"where": paste.to, "text": paste.text})).collect();
                json!({"step": number, "title": step.title, "instructions": step.instructions, "paste": paste})
            })
            .collect();
        json!({
            "guide": markdown(&steps),
            "steps": numbered,
            "token_permissions": {"contents": "write", "pull_requests": "write", "metadata": "read"},
            "verification_task": self.task(),
        })
    }

    fn token(&self) -> GuideStep {
        let name = &self.name;
        GuideStep {
            title: "Create a fine-grained token",
            instructions: format!(
                "Visit {TOKEN_PAGE} and make a token for this one repository.\n\
                 Resource owner: {}. Repository access: only select repositories, {name}. Expiration: 90 days or less.\n\
                 Repository permissions: Contents read and write, Pull requests read and write; Metadata read-only comes \
                 by itself. Add Workflows read and write only if tasks shall change .github/workflows.\n\
                 The token is shown once. Put it where step 2 says, and never into a task or a chat.",
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
        if !self.is_known {
            instructions.push_str("\nThen write the environment down here, so that cloud tasks find it.");
            paste.push(Paste { to: "A shell on this machine", text: self.command() });
        }
        GuideStep { title: "Configure the environment", instructions, paste }
    }

    fn web_step(&self) -> (String, Vec<Paste>) {
        let words = format!(
            "Visit {ENVIRONMENTS_PAGE} and make or open the environment of {}.\n\
             Secrets: add GITHUB_TOKEN with the token of step 1. Setup script and maintenance script: manual, as below.\n\
             Agent internet access: on, for github.com, if tasks shall push by themselves.\n\
             The setup script leaves the token where the agent's git finds it, so the agent can read it: that is why it \
             is for one repository only.",
            self.name
        );
        let paste = vec![
            Paste { to: "Setup script", text: self.setup.clone() },
            Paste { to: "Maintenance script", text: self.maintenance.clone() },
        ];
        (words, paste)
    }

    fn worker_step(&self) -> (String, Vec<Paste>) {
        let words = "This environment's tasks run on your own workers, so there is no web page: the token is the worker's own \
                     secret. On every machine that works for it, as the user the worker runs as, run the lines below; the \
                     first waits for the token and does not show it."
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
        (words, vec![Paste { to: "A shell on each worker", text }])
    }

    fn verification(&self) -> GuideStep {
        let text = format!(
            "mcp-delegator cloud submit {} --env-id {}\n",
            shell_word(&self.task()),
            shell_word(&self.env_id)
        );
        GuideStep {
            title: "Verify",
            instructions: "Submit the verification task. A branch and a pull request on GitHub prove that everything works; \
                           close and delete both afterwards."
                .to_owned(),
            paste: vec![Paste { to: "A shell, or the submit tool", text }],
        }
    }

    fn task(&self) -> String {
        format!(
            "Test GitHub access to {}: create a branch access-check, add a file ACCESS-CHECK.md that says when it was made, \
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
    for (step, number) in steps.iter().zip(1..) {
        text.push_str(&format!("\n## Step {number}: {}\n\n{}\n", step.title, step.instructions));
        for paste in &step.paste {
            let fenced = delegator_domain::terminal::fenced(&paste.text);
            text.push_str(&format!("\n{}:\n\n{fenced}\n", paste.to));
        }
    }
    text
}
