//! One finding of `doctor`, and how it is built.

use std::os::unix::fs::PermissionsExt;

use delegator_domain::named_enum;

use crate::commands::prelude::*;
use crate::spec::shell::shell_word;

named_enum! {
    #[derive(Serialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum CheckStatus {
        Ok = "ok",
        Warning = "warning",
        Problem = "problem",
    }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Check {
    pub name: String,
    pub status: CheckStatus,
    pub message: String,
    /// How to fix it.
    pub suggestion: Option<String>,
    /// The error that a problem is reported as.
    #[serde(skip)]
    pub code: Option<ErrorCode>,
}

impl Check {
    pub fn ok(name: impl Into<String>, message: impl Into<String>) -> Check {
        let (name, message) = (name.into(), message.into());
        Check { name, status: CheckStatus::Ok, message, suggestion: None, code: None }
    }

    /// The suggestion of a warning or a problem may be empty.
    pub fn warning(
        name: impl Into<String>,
        message: impl Into<String>,
        suggestion: impl Into<String>,
    ) -> Check {
        let suggestion = Some(suggestion.into()).filter(|text| !text.is_empty());
        Check { status: CheckStatus::Warning, suggestion, ..Check::ok(name, message) }
    }

    pub fn problem(
        name: impl Into<String>,
        code: ErrorCode,
        message: impl Into<String>,
        suggestion: impl Into<String>,
    ) -> Check {
        let warning = Check::warning(name, message, suggestion);
        Check { status: CheckStatus::Problem, code: Some(code), ..warning }
    }

    pub fn at_most_warning(self) -> Check {
        let is_problem = self.status == CheckStatus::Problem;
        Check { status: if is_problem { CheckStatus::Warning } else { self.status }, code: None, ..self }
    }

    pub fn readable_by_others(name: &str, path: &Path, content: &str) -> Option<Check> {
        const READABLE_BY_OTHERS: u32 = 0o004;
        let mode = path.metadata().ok()?.permissions().mode();
        (mode & READABLE_BY_OTHERS != 0).then(|| {
            let path = path.display().to_string();
            let message = format!("{path} contains {content} and can be read by every user of this machine");
            Check::warning(name, message, format!("Run: chmod go= {}", shell_word(&path)))
        })
    }

    pub fn failed(context: &Context<'_>, name: impl Into<String>, error: AppError) -> Check {
        let syntax = context.screen.presentation.call_syntax();
        let suggestion = error.suggestion.map(|suggestion| syntax.sentence(&suggestion));
        Check::problem(name, error.code, error.message, suggestion.unwrap_or_default())
    }
}
