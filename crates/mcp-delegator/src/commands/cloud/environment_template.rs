//! Environment templates: a setup and a maintenance script for each technology stack.
//!
//! The scripts are files under `templates/`, so that tests can check them with a shell. Values that differ
//! between users are set as quoted variables at the top.

use delegator_domain::named_enum;

use crate::commands::prelude::*;
use crate::spec::shell::shell_word;

named_enum! {
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Stack {
        Node = "node",
        Python = "python",
        Go = "go",
        Rust = "rust",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Template {
    pub name: &'static str,
    pub about: &'static str,
    pub stack: Option<Stack>,
    setup: &'static str,
    maintenance: &'static str,
}

/// Stand for the author of commits, to be replaced by the user.
pub const USER_NAME: &str = "Your Name";
pub const USER_EMAIL: &str = "you@example.com";

const GITHUB: &str = include_str!("../../../templates/github.sh");

/// A template with access to GitHub, whose scripts begin with this name.
macro_rules! github_template {
    ($name:literal, $about:literal, $stack:ident, $scripts:literal) => {
        Template {
            name: $name,
            about: $about,
            stack: Some(Stack::$stack),
            setup: include_str!(concat!("../../../templates/", $scripts, ".setup.sh")),
            maintenance: include_str!(concat!("../../../templates/", $scripts, ".maintenance.sh")),
        }
    };
}

pub const ALL: [Template; 5] = [
    github_template!("github-node-typescript", "Node or TypeScript, with access to GitHub", Node, "node"),
    github_template!("github-python", "Python, with access to GitHub", Python, "python"),
    github_template!("github-go", "Go, with access to GitHub", Go, "go"),
    github_template!("github-rust", "Rust, with access to GitHub", Rust, "rust"),
    Template {
        name: "basic-codex-cloud",
        about: "Nothing but the repository",
        stack: None,
        setup: "",
        maintenance: "",
    },
];

impl Template {
    pub fn named(name: &str) -> Option<&'static Template> {
        ALL.iter().find(|template| template.name == name)
    }

    pub fn for_stack(stack: Stack) -> Option<&'static Template> {
        ALL.iter().find(|template| template.stack == Some(stack))
    }

    /// Script that runs once, when the environment is created; commits get this author.
    pub fn setup_script(&self, user_name: &str, user_email: &str) -> String {
        let identity =
            format!("GIT_USER_NAME={}\nGIT_USER_EMAIL={}\n", shell_word(user_name), shell_word(user_email));
        // The templates of a stack configure git access to GitHub first.
        if self.stack.is_some() {
            format!("{HEAD}{identity}{GITHUB}{}", self.setup)
        } else {
            format!("{HEAD}{}", self.setup)
        }
    }

    /// Script that runs when an existing environment is used again.
    pub fn maintenance_script(&self) -> String {
        format!("{HEAD}{}", self.maintenance)
    }

    pub fn to_value(self) -> Value {
        json!({
            "name": self.name,
            "description": self.about,
            "stack": self.stack,
            "secrets": if self.stack.is_some() { vec!["GITHUB_TOKEN"] } else { Vec::new() },
            "setup": self.setup_script(USER_NAME, USER_EMAIL),
            "maintenance": self.maintenance_script(),
            "environment": {
                "env_myproject": {
                    "name": "My Project",
                    "repoUrl": "https://github.com/user/myproject",
                    "stack": self.stack.unwrap_or(Stack::Node),
                    "provider": "codex-cloud",
                },
            },
        })
    }
}

const HEAD: &str = "#!/usr/bin/env bash\nset -euo pipefail\n";
