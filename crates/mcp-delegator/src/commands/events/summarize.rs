//! `events summarize`: summarize a transcript.

use delegator_transcript::{FoldOptions, LineLimits, Summarizer, Usage};

use crate::commands::events::source::Source;
use crate::commands::events::summary::{self, Summary};
use crate::commands::events::{SOURCE_FAILURES, TranscriptInput};
use crate::commands::prelude::*;

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Summarize {
    #[serde(flatten)]
    pub transcript: TranscriptInput,
    /// Working directory of the agent: paths below it are shown as relative paths
    #[schemars(length(min = 1, max = 4096))]
    pub working_dir: Option<String>,
    /// Token usage of the thread before this run, as in token_usage; it is subtracted
    pub usage_before: Option<Map<String, Value>>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "State, final message, files, commands, plan and tokens, from any dialect.",
    shape: Shape::Show("transcript"),
    open_ended: true,
    failures: SOURCE_FAILURES,
    examples: &[
        example("mcp-delegator events summarize events.jsonl", "what the agent did"),
        example(
            "mcp-delegator events summarize - --format markdown < session.jsonl",
            "the same, for a model to read",
        ),
    ],
    input: InputType::with_rules::<Summarize>(),
    ..CommandSpec::read_only::<Summarize, Summary>(&["events", "summarize"], "Summarize a transcript")
};

const TOKEN_KEYS: [&str; 5] = [
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
];

impl InputRules for Summarize {
    fn problems(&self) -> Vec<Problem> {
        let is_wrong = |(key, value): &(&String, &Value)| {
            !TOKEN_KEYS.contains(&key.as_str()) || value.as_i64().is_none()
        };
        let wrong = self.usage_before.iter().flatten().find(is_wrong);
        let problem = wrong.map(|(key, _)| {
            Problem::invalid(format!("usage_before.{key}"), "is not a token count")
                .suggest(Some(format!("Known keys: {}.", TOKEN_KEYS.join(", "))))
        });
        problem.into_iter().collect()
    }
}

fn usage(object: &Map<String, Value>) -> Usage {
    let tokens = |key: &str| object.get(key).and_then(Value::as_i64);
    Usage {
        input_tokens: tokens("input_tokens").unwrap_or(0),
        cached_input_tokens: tokens("cached_input_tokens").unwrap_or(0),
        cache_write_input_tokens: tokens("cache_write_input_tokens"),
        output_tokens: tokens("output_tokens").unwrap_or(0),
        reasoning_output_tokens: tokens("reasoning_output_tokens"),
    }
}

pub fn run(context: &Context<'_>, input: Summarize) -> Result<CommandOutput, AppError> {
    let mut source = Source::open(context, input.transcript.source.as_deref())?;
    let bar = context.screen.progress(source.size());
    let options = FoldOptions {
        workdir: input.working_dir.clone(),
        usage_before: input.usage_before.as_ref().map(usage),
        dialect: source.dialect(context)?,
        thread: source.thread()?,
        ..FoldOptions::default()
    };
    let mut summarizer = Summarizer::new(options, LineLimits::STANDARD);
    source.read_all(|bytes| {
        bar.inc(bytes.len() as u64);
        summarizer.push(bytes);
        Ok(true)
    })?;
    bar.finish_and_clear();
    let report = summarizer.finish();
    let summary = Summary::of(&report, input.working_dir.as_deref(), source.ended_writer()?);
    Ok(CommandOutput::done(summary).warn(summary::warnings(&report)))
}
