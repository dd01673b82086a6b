//! Checks of the configuration: invalid values, and settings without effect.

use super::check::Check;
use crate::commands::prelude::*;

const NAME: &str = "configuration";

pub fn checks(context: &Context<'_>) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(error) = context.config_error {
        let advice = AppError::from(error.clone()).problems;
        checks.extend(error.problems.iter().zip(advice).map(|(problem, advice)| {
            let suggestion = advice.hint().or(advice.permitted.clone()).unwrap_or_default();
            Check::problem(NAME, ErrorCode::ConfigInvalid, problem.to_string(), suggestion)
        }));
    }
    let warnings = context.config.warnings.iter();
    checks.extend(warnings.map(|warning| Check::warning(NAME, &warning.message, "")));
    if checks.is_empty() {
        let file = context.config.user_file.as_ref().map(|path| path.display().to_string());
        checks.push(Check::ok(NAME, file.unwrap_or_else(|| "no file; the defaults apply".to_owned())));
    }
    checks
}
