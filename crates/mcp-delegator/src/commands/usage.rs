//! `usage`: what ended tasks used: tokens, cost, time, and how many of them are verified.
//!
//! Costs are those that agents report. Nothing is estimated: an agent that reports no cost is counted.

use delegator_registry::{GroupUsage, UsageGroup};

use crate::commands::inputs::{choices, since_ms, since_problem};
use crate::commands::prelude::*;
use crate::output::data::usage::UsageSums;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    #[default]
    Agent,
    Repo,
    Day,
}

fn groups(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    choices(["agent", "repo", "day"])
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct UsageInputs {
    /// Tasks that ended within this time, such as 7d or 12h
    #[serde(default = "default_since")]
    #[schemars(length(min = 1, max = 64))]
    pub since: String,
    /// One line for each agent, repository or day (in UTC)
    #[serde(default)]
    #[schemars(schema_with = "groups", extend("default" = By::Agent))]
    pub by: By,
}

fn default_since() -> String {
    "7d".to_owned()
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct UsageReport {
    /// As it was given, such as 7d.
    pub since: String,
    pub since_ts: UtcTime,
    #[schemars(extend("enum" = ["agent", "repo", "day"]))]
    pub by: &'static str,
    pub total: UsageLine,
    /// One for each agent or repository, that of most tasks first; or for each day, the last one first.
    pub groups: Vec<UsageLine>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct UsageLine {
    /// The agent, the path of the repository, or the day; empty in the total.
    pub name: String,
    #[serde(flatten)]
    pub sums: UsageSums,
    /// Whether the cost is what the agents report, of some tasks or of all.
    #[schemars(extend("enum" = ["reported", "partly_reported", "not_reported"]))]
    pub cost_source: &'static str,
    pub tasks_without_cost_count: u64,
    /// Tasks with a verify command.
    pub tasks_with_verify_count: u64,
    pub verified_count: u64,
    /// Of the tasks with a verify command, from 0 to 1; null if there are none.
    pub verified_share: Option<f64>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Counts the tasks that have ended, as long as they are retained (retention_hours). The cost is what agents report; \
              nothing is estimated.",
    shape: Shape::Show("usage"),
    toolset: Toolset::Hidden,
    examples: &[
        example("mcp-delegator usage", "tokens, cost and verified tasks of the last 7 days, by agent"),
        example("mcp-delegator usage --since 30d --by repo", "the same of a month, by repository"),
    ],
    input: InputType::with_rules::<UsageInputs>(),
    ..CommandSpec::read_only::<UsageInputs, UsageReport>(
        &["usage"],
        "Show what tasks used: tokens, cost and time",
    )
};

impl InputRules for UsageInputs {
    fn problems(&self) -> Vec<Problem> {
        since_problem(Some(&self.since)).into_iter().collect()
    }
}

pub fn run(context: &Context<'_>, input: UsageInputs) -> Result<CommandOutput, AppError> {
    Ok(CommandOutput::done(report(context, input)?))
}

pub fn report(context: &Context<'_>, input: UsageInputs) -> Result<UsageReport, AppError> {
    let since_ms = since_ms(&input.since).unwrap_or_default();
    let (group, by) = match input.by {
        By::Agent => (UsageGroup::Agent, "agent"),
        By::Repo => (UsageGroup::Repository, "repo"),
        By::Day => (UsageGroup::Day, "day"),
    };
    let (groups, total) = engine(context)?.results().usage_by(group, since_ms)?;
    let groups = groups.iter().map(UsageLine::of).collect();
    let total = UsageLine::of(&total);
    Ok(UsageReport { since_ts: UtcTime::from_ms(since_ms), since: input.since, by, total, groups })
}

impl UsageLine {
    fn of(usage: &GroupUsage) -> UsageLine {
        let cost_source = match (usage.cost.microdollars, usage.without_cost) {
            (None, _) => "not_reported",
            (Some(_), 0) => "reported",
            (Some(_), _) => "partly_reported",
        };
        UsageLine {
            name: usage.name.clone(),
            sums: (&usage.cost).into(),
            cost_source,
            tasks_without_cost_count: usage.without_cost,
            tasks_with_verify_count: usage.with_verify,
            verified_count: usage.verified,
            verified_share: (usage.with_verify > 0).then(|| usage.verified as f64 / usage.with_verify as f64),
        }
    }

    fn row(&self, name: &str) -> Vec<String> {
        let sums = &self.sums;
        let verified = || format!("{} of {}", self.verified_count, self.tasks_with_verify_count);
        let mark = if self.cost_source == "partly_reported" { "+" } else { "" };
        vec![
            name.to_owned(),
            cell(sums.task_count.as_ref()),
            cell(self.verified_share.map(|_| verified()).as_ref()),
            grouped(sums.input_tokens),
            grouped(sums.cached_input_tokens),
            grouped(sums.output_tokens),
            cell(sums.cost_usd.map(|cost| format!("${cost:.2}{mark}")).as_ref()),
            grouped(sums.duration_seconds),
        ]
    }
}

/// `1,234,567`.
pub fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect::<Vec<_>>();
    format!("{}{}", if number < 0 { "-" } else { "" }, groups.join(","))
}

impl CommandData for UsageReport {
    fn document(&self) -> Document {
        let since = self.since.trim();
        let count = self.total.sums.task_count.unwrap_or_default();
        if count == 0 {
            return Document::titled(format!("No task has ended in the last {since}"));
        }
        let first = match self.by {
            "day" => "day (UTC)",
            "repo" => "repository",
            by => by,
        };
        let columns = [first, "tasks", "verified", "input", "cached", "output", "cost", "seconds"];
        let mut rows: Vec<Vec<String>> = self.groups.iter().map(|line| line.row(&line.name)).collect();
        if rows.len() > 1 {
            rows.push(self.total.row("total"));
        }
        let without = self.total.tasks_without_cost_count;
        let cost = match self.total.cost_source {
            "not_reported" => "No agent reported a cost.".to_owned(),
            "reported" => "The cost is as the agents report it.".to_owned(),
            _ => {
                format!("The cost is as the agents report it; {} reported none (+).", plural(without, "task"))
            }
        };
        let without_tokens = self.total.sums.tasks_without_tokens_count;
        Document::titled(format!("{} ended in the last {since}", plural(count, "task")))
            .table(&columns, rows)
            .text(cost)
            .with(without_tokens, |document, count| {
                document.text(format!("{} reported no tokens.", plural(count, "task")))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
