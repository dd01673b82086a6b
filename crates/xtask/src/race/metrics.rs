//! What the race measures: every metric with its title, its unit and the table it stands in.
//!
//! In every metric the smaller value is the better one.

use serde::{Deserialize, Serialize};

/// A table of the page. Its metrics are measured one after the other, with the load of that time beside the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Group {
    Server,
    OneTask,
    ManyTasks,
    Ending,
}

impl Group {
    pub(crate) const ALL: [Group; 4] = [Group::Server, Group::OneTask, Group::ManyTasks, Group::Ending];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Group::Server => "The server",
            Group::OneTask => "One task",
            Group::ManyTasks => "Many tasks",
            Group::Ending => "Cancelling, and the end of the server",
        }
    }

    pub(crate) fn metrics(self) -> impl Iterator<Item = Metric> {
        Metric::ALL.into_iter().filter(move |metric| metric.group() == self)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    Start,
    Status,
    Memory,
    ToolBytes,
    ToolTokens,
    BackgroundGit,
    BackgroundPlain,
    RunGit,
    RunPlain,
    EndToAnswer,
    CommandLine,
    TwentyAtOnce,
    CpuGit,
    CpuPlain,
    ProcessesLeft,
    CancelSeconds,
    ResultsLost,
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Milliseconds,
    Seconds,
    Mebibytes,
    Count,
}

impl Metric {
    pub(crate) const ALL: [Metric; 17] = [
        Metric::Start,
        Metric::Status,
        Metric::Memory,
        Metric::ToolBytes,
        Metric::ToolTokens,
        Metric::BackgroundGit,
        Metric::BackgroundPlain,
        Metric::RunGit,
        Metric::RunPlain,
        Metric::EndToAnswer,
        Metric::CommandLine,
        Metric::TwentyAtOnce,
        Metric::CpuGit,
        Metric::CpuPlain,
        Metric::ProcessesLeft,
        Metric::CancelSeconds,
        Metric::ResultsLost,
    ];

    pub(crate) fn group(self) -> Group {
        match self {
            Metric::Start | Metric::Status | Metric::Memory | Metric::ToolBytes | Metric::ToolTokens => {
                Group::Server
            }
            Metric::BackgroundGit
            | Metric::BackgroundPlain
            | Metric::RunGit
            | Metric::RunPlain
            | Metric::EndToAnswer
            | Metric::CommandLine => Group::OneTask,
            Metric::TwentyAtOnce | Metric::CpuGit | Metric::CpuPlain => Group::ManyTasks,
            Metric::ProcessesLeft | Metric::CancelSeconds | Metric::ResultsLost => Group::Ending,
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Metric::Start => "start → initialize",
            Metric::Status => "status call",
            Metric::Memory => "memory (RSS)",
            Metric::ToolBytes => "tool list, bytes",
            Metric::ToolTokens => "tool list, tokens",
            Metric::BackgroundGit => "exec + wait, git",
            Metric::BackgroundPlain => "exec + wait, no git",
            Metric::RunGit => "run, git",
            Metric::RunPlain => "run, no git",
            Metric::EndToAnswer => "agent's end → answer, git",
            Metric::CommandLine => "`local run`, git",
            Metric::TwentyAtOnce => "20 tasks at once, no git",
            Metric::CpuGit => "CPU per task, git",
            Metric::CpuPlain => "CPU per task, no git",
            Metric::ProcessesLeft => "processes left after cancel",
            Metric::CancelSeconds => "cancel → all processes gone",
            Metric::ResultsLost => "results lost with the server",
        }
    }

    pub(crate) fn unit(self) -> Unit {
        match self {
            Metric::Memory => Unit::Mebibytes,
            Metric::CancelSeconds => Unit::Seconds,
            Metric::ToolBytes | Metric::ToolTokens | Metric::ProcessesLeft | Metric::ResultsLost => {
                Unit::Count
            }
            _ => Unit::Milliseconds,
        }
    }

    /// Whether the time of the agent alone was subtracted.
    pub(crate) fn excludes_the_agent(self) -> bool {
        matches!(self, Metric::BackgroundGit | Metric::BackgroundPlain | Metric::RunGit | Metric::RunPlain)
    }
}

impl Unit {
    pub(crate) fn format(self, value: f64) -> String {
        match self {
            Unit::Milliseconds if value >= 100.0 => format!("{} ms", grouped(value)),
            Unit::Milliseconds if value >= 10.0 => format!("{value:.1} ms"),
            Unit::Milliseconds => format!("{value:.2} ms"),
            Unit::Seconds => format!("{value:.1} s"),
            Unit::Mebibytes => format!("{value:.1} MiB"),
            Unit::Count => grouped(value),
        }
    }
}

/// A whole number with a comma between each three digits.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 && text != "0" { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_metric_stands_in_one_table_and_has_its_own_title() {
        let listed: Vec<Metric> = Group::ALL.into_iter().flat_map(Group::metrics).collect();
        assert_eq!(listed, Metric::ALL);
        let titles: BTreeSet<&str> = listed.iter().map(|metric| metric.title()).collect();
        assert_eq!(titles.len(), Metric::ALL.len());
    }

    #[test]
    fn values_have_the_digits_that_mean_something() {
        assert_eq!(Unit::Milliseconds.format(0.126), "0.13 ms");
        assert_eq!(Unit::Milliseconds.format(28.61), "28.6 ms");
        assert_eq!(Unit::Milliseconds.format(10517.8), "10,518 ms");
        assert_eq!(Unit::Count.format(1_234_567.0), "1,234,567");
        assert_eq!(Unit::Count.format(-1234.0), "-1,234");
        assert_eq!(Unit::Mebibytes.format(9.62), "9.6 MiB");
    }
}
