//! The summary of a transcript: conversion from the transcript's report, and its document.

use delegator_transcript::{Dialect, McpCalls, Report, StreamOutcome, TestRunReport, TurnState, Usage};

use crate::commands::prelude::*;
use crate::output::data::failure::EndedWriter;
use crate::output::data::progress::Progress;
use crate::output::data::verification::TestResults;
use crate::output::documents::document::known_facts;
use crate::output::truncation::apply::shorten;
use crate::output::truncation::plan::{Sizes, TruncationPlan};

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Summary {
    /// completed, failed, interrupted, working (while followed), or unknown if the stream does not say.
    pub state: &'static str,
    /// The agent's error message.
    pub error_message: Option<String>,
    /// The task that wrote the transcript, if it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<EndedWriter>,
    /// thread, idle, protocol or rollout; null if no line was recognised.
    pub dialect: Option<Value>,
    pub final_message: Option<String>,
    pub is_final_message_truncated: bool,
    /// The final message as JSON, if it is an object or a list.
    pub structured_output: Option<Value>,
    pub turn_count: u64,
    pub progress: Option<Progress>,
    pub file_operations: FileSummary,
    pub commands: CommandsSummary,
    /// Final test counts: passed, failed, skipped, failed_tests; null if no tests were counted.
    pub test_results: Option<TestResults>,
    /// The test runs behind these counts, oldest first.
    pub test_runs: Vec<TestRun>,
    /// Commands that failed and did not succeed later, with the source locations they reported.
    pub failures: Vec<Value>,
    pub mcp_calls: McpCallsSummary,
    pub web_search_count: u64,
    pub sub_agent_count: u64,
    pub plan: Vec<PlanStep>,
    pub thread_info: TranscriptThread,
    /// Warnings of the agent; not failures.
    pub agent_warnings: Vec<CountedMessage>,
    /// Errors from which the agent recovered, or was still recovering.
    pub transient_errors: Vec<CountedMessage>,
    /// Items that started but did not end.
    pub open_items: Vec<Value>,
    /// Anomalies in the stream.
    pub oddities: Vec<Value>,
    pub counts: CountsSummary,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FileSummary {
    pub modified_files: Vec<String>,
    pub added_files: Vec<String>,
    pub deleted_files: Vec<String>,
    /// Number of changed files beyond the list.
    pub not_listed_count: u64,
    pub failed_patch_count: u64,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CommandsSummary {
    pub finished_count: u64,
    pub failed_count: u64,
    pub declined_count: u64,
    /// The last commands, oldest first.
    pub items: Vec<CommandSummary>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CommandSummary {
    pub command: String,
    pub status: Value,
    pub exit_code: Option<i32>,
    pub output_bytes: u64,
}

/// One run of a test command.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TestRun {
    pub command: String,
    pub runner: Value,
    pub exit_code: Option<i32>,
    /// The counts are as the runner reported them.
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
    pub is_incomplete: bool,
    /// The command failed although it counted no failed test.
    pub has_ended_badly: bool,
    /// Another run covers the same tests; this one is not in the sums.
    pub is_superseded: bool,
}

fn test_run(run: &TestRunReport) -> TestRun {
    TestRun {
        command: run.command.clone(),
        runner: json!(run.runner),
        exit_code: run.exit_code,
        passed: run.passed,
        failed: run.failed,
        skipped: run.skipped,
        is_incomplete: run.incomplete,
        has_ended_badly: run.ended_badly,
        is_superseded: run.superseded,
    }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct McpCallsSummary {
    pub finished_count: u64,
    pub failed_count: u64,
    /// For the first 100 tools.
    pub by_tool: Vec<ToolCallsSummary>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ToolCallsSummary {
    pub server: String,
    pub tool: String,
    pub finished_count: u64,
    pub failed_count: u64,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PlanStep {
    pub text: String,
    pub completed: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TranscriptThread {
    pub thread_id: Option<String>,
    /// 0 to 1: cached over all input tokens.
    pub cache_hit_rate: Option<f64>,
    /// Usage of this run.
    pub token_usage: Option<BTreeMap<&'static str, i64>>,
    /// Total of the thread, as reported in the stream.
    pub thread_token_usage: Option<BTreeMap<&'static str, i64>>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CountedMessage {
    pub message: String,
    pub count: u64,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CountsSummary {
    pub line_count: u64,
    pub byte_count: u64,
    pub event_count: u64,
    pub unknown_count: u64,
    pub not_json_count: u64,
    pub over_long_count: u64,
    pub mixed_dialect_count: u64,
    pub repeated_item_count: u64,
    pub is_last_line_unterminated: bool,
    /// Number of lines per event type.
    pub by_type: BTreeMap<String, u64>,
    /// Number of completed items per type.
    pub items: BTreeMap<String, u64>,
}

impl Summary {
    pub fn of(report: &Report, working_dir: Option<&str>, task: Option<EndedWriter>) -> Summary {
        let (state, error_message) = state_of(report);
        let counted_messages = |notices: &[delegator_transcript::Notice]| {
            notices
                .iter()
                .map(|notice| CountedMessage { message: notice.message.clone(), count: notice.count })
                .collect()
        };
        Summary {
            state,
            error_message,
            task,
            dialect: report.dialect.map(|dialect| json!(dialect)),
            final_message: report.final_message.as_ref().map(|message| message.text.clone()),
            is_final_message_truncated: report
                .final_message
                .as_ref()
                .is_some_and(|message| message.truncated),
            structured_output: report.structured_output(),
            turn_count: report.turns,
            progress: Progress::of_report(report),
            file_operations: file_summary(report, working_dir),
            commands: commands_summary(report),
            test_results: report.tests.as_ref().and_then(TestResults::of),
            test_runs: report.tests.iter().flat_map(|tests| &tests.runs).map(test_run).collect(),
            failures: report.failures.iter().map(|failure| json!(failure)).collect(),
            mcp_calls: mcp_calls_summary(&report.mcp_calls),
            web_search_count: report.web_searches,
            sub_agent_count: report.sub_agents,
            plan: report
                .plan
                .iter()
                .map(|step| PlanStep { text: step.text.clone(), completed: step.completed })
                .collect(),
            thread_info: TranscriptThread {
                thread_id: report.thread_id.clone(),
                cache_hit_rate: report.usage.as_ref().and_then(|usage| usage.cache_hit_rate),
                token_usage: report.usage.as_ref().map(|usage| token_counts(&usage.own)),
                thread_token_usage: report.usage.as_ref().map(|usage| token_counts(&usage.thread_total)),
            },
            agent_warnings: counted_messages(&report.warnings),
            transient_errors: counted_messages(&report.transient_errors),
            open_items: report.open_items.iter().map(|item| json!(item)).collect(),
            oddities: report.oddities.iter().map(|oddity| json!(oddity)).collect(),
            counts: counts_summary(report),
        }
    }
}

fn state_of(report: &Report) -> (&'static str, Option<String>) {
    match &report.outcome {
        // Without a recognised line the state is unknown.
        _ if report.dialect.is_none() => ("unknown", None),
        // The lines of a plain agent do not say how it ended.
        _ if report.dialect == Some(Dialect::Plain) => ("unknown", None),
        // Only `events follow` summarizes before the end.
        _ if report.turn == TurnState::Running => ("working", None),
        StreamOutcome::Completed => ("completed", None),
        StreamOutcome::Failed { message, .. } => ("failed", Some(message.clone())),
        StreamOutcome::Interrupted => ("interrupted", None),
        StreamOutcome::NotAnnounced => ("unknown", None),
    }
}

fn file_summary(report: &Report, working_dir: Option<&str>) -> FileSummary {
    let displayed = |paths: &[String]| {
        let relative = |path: &String| {
            let inside = working_dir.and_then(|dir| Path::new(path).strip_prefix(dir).ok());
            inside.map_or_else(|| path.clone(), |inside| inside.display().to_string())
        };
        paths.iter().map(relative).collect()
    };
    FileSummary {
        modified_files: displayed(&report.files.modified),
        added_files: displayed(&report.files.added),
        deleted_files: displayed(&report.files.deleted),
        not_listed_count: report.files.not_listed,
        failed_patch_count: report.files.failed_patches,
    }
}

fn commands_summary(report: &Report) -> CommandsSummary {
    let items = report
        .commands
        .list
        .iter()
        .map(|command| CommandSummary {
            command: command.command.clone(),
            status: json!(command.status),
            exit_code: command.exit_code,
            output_bytes: command.output_bytes,
        })
        .collect();
    CommandsSummary {
        finished_count: report.commands.finished,
        failed_count: report.commands.failed,
        declined_count: report.commands.declined,
        items,
    }
}

fn mcp_calls_summary(calls: &McpCalls) -> McpCallsSummary {
    let by_tool = calls.by_tool.iter().map(|tool| ToolCallsSummary {
        server: tool.server.clone(),
        tool: tool.tool.clone(),
        finished_count: tool.finished,
        failed_count: tool.failed,
    });
    McpCallsSummary { finished_count: calls.finished, failed_count: calls.failed, by_tool: by_tool.collect() }
}

fn token_counts(usage: &Usage) -> BTreeMap<&'static str, i64> {
    let mut tokens = BTreeMap::from([
        ("input_tokens", usage.input_tokens),
        ("cached_input_tokens", usage.cached_input_tokens),
        ("output_tokens", usage.output_tokens),
    ]);
    tokens.extend(usage.cache_write_input_tokens.map(|count| ("cache_write_input_tokens", count)));
    tokens.extend(usage.reasoning_output_tokens.map(|count| ("reasoning_output_tokens", count)));
    tokens
}

fn counts_summary(report: &Report) -> CountsSummary {
    let counts = &report.counts;
    CountsSummary {
        line_count: counts.lines,
        byte_count: counts.bytes,
        event_count: counts.events,
        unknown_count: counts.unknown,
        not_json_count: counts.not_json,
        over_long_count: counts.over_long,
        mixed_dialect_count: counts.mixed_dialect,
        repeated_item_count: report.repeated_items,
        is_last_line_unterminated: counts.unterminated,
        by_type: counts.by_type.clone(),
        items: counts.items.clone(),
    }
}

pub fn warnings(report: &Report) -> Vec<Warning> {
    let counts = &report.counts;
    let mut warnings = Vec::new();
    let mut warn = |code, message: String| warnings.push(Warning::new(code, message));
    if report.dialect.is_none() {
        let message = match counts.lines {
            0 => "The transcript is empty.".to_owned(),
            lines => format!("None of the {lines} lines was recognised as an agent event."),
        };
        warn(WarningCode::NoEvents, message);
    } else if counts.not_json + counts.unknown > 0 {
        let (not_json, unknown) = (counts.not_json, counts.unknown);
        let message = format!("{not_json} lines are not JSON and {unknown} are unknown; they were ignored.");
        warn(WarningCode::LinesIgnored, message);
    }
    if counts.over_long > 0 {
        warn(
            WarningCode::LinesTooLong,
            format!("{} lines were too long; only their beginning and end were read.", counts.over_long),
        );
    }
    if counts.mixed_dialect > 0 {
        warn(
            WarningCode::Anomalies,
            format!("{} lines have a different dialect than the rest of the stream.", counts.mixed_dialect),
        );
    }
    warnings
}

impl CommandData for Summary {
    fn document(&self) -> Document {
        let mut document = Document::titled("Transcript summary").block(Block::Facts(self.facts()));
        let files = &self.file_operations;
        let files = [
            (&files.added_files, "added"),
            (&files.modified_files, "modified"),
            (&files.deleted_files, "deleted"),
        ];
        let files = files
            .iter()
            .flat_map(|(paths, change)| paths.iter().map(|path| vec![(*change).to_owned(), path.clone()]));
        let step = |step: &PlanStep| {
            vec![if step.completed { "done" } else { "open" }.to_owned(), step.text.clone()]
        };
        let command = |command: &CommandSummary| {
            vec![cell(command.exit_code.as_ref()), command.command.replace('\n', " ")]
        };
        let notices = [(&self.agent_warnings, "warning"), (&self.transient_errors, "transient error")];
        let notices = notices.iter().flat_map(|(notices, label)| {
            notices
                .iter()
                .map(|notice| vec![(*label).to_owned(), notice.count.to_string(), notice.message.clone()])
        });
        document = document
            .table(&["file", "path"], files.collect())
            .table(&["plan", "step"], self.plan.iter().map(step).collect())
            .table(&["exit", "command"], self.commands.items.iter().map(command).collect())
            .table(&["notice", "times", "message"], notices.collect());
        document.blocks.extend(self.final_message.clone().map(Block::FinalMessage));
        document
    }

    fn shrink(&mut self, plan: TruncationPlan) -> Sizes {
        if let Some(message) = &mut self.final_message {
            let bytes = message.len();
            shorten(message, plan.priority_bytes);
            self.is_final_message_truncated |= message.len() != bytes;
        }
        Sizes::default()
    }
}

impl Summary {
    fn facts(&self) -> Vec<(String, String)> {
        let progress = self.progress.as_ref();
        let task = self.task.as_ref().map(|task| {
            let reason = task.end.as_ref().map(|end| format!(". {}", end.reason)).unwrap_or_default();
            format!("{} {}{reason}", task.task_id, task.state)
        });
        let tokens = self.thread_info.token_usage.as_ref().map(|usage| {
            let [read, cached, written] =
                ["input_tokens", "cached_input_tokens", "output_tokens"].map(|name| cell(usage.get(name)));
            format!("{read} input ({cached} cached), {written} output")
        });
        let CommandsSummary { finished_count, failed_count, .. } = self.commands;
        let mut facts = known_facts([
            ("state", Some(self.state.to_owned())),
            ("error", self.error_message.clone()),
            ("task", task),
            ("activity", progress.and_then(|progress| progress.current_activity.clone())),
            ("progress", progress.and_then(Progress::percent_text)),
            ("thread", self.thread_info.thread_id.clone()),
            ("tokens", tokens),
            ("commands", Some(format!("{finished_count} run, {failed_count} failed"))),
        ]);
        facts.extend(self.test_results.iter().flat_map(TestResults::facts));
        let CountsSummary { line_count, event_count, .. } = self.counts;
        facts.push(("lines".to_owned(), format!("{line_count} ({event_count} events)")));
        facts
    }
}
