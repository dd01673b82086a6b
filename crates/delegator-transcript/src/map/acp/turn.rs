//! How a turn ended. The stop reason `end_turn` proves nothing: most agents also answer so after the model
//! failed. Their signs of failure, as recorded, decide as well.

use delegator_domain::text::beginning;

use crate::event::{AgentError, Usage};
use crate::json::Text;
use crate::wire::acp::{PromptResult, StopReason, code_of_text};

/// Begins Copilot's message about an error.
const COPILOT_ERROR: &str = "Error: ";
/// Begins goose's message about an error.
const GOOSE_ERROR: &str = "Ran into this error: ";
const GOOSE_ADVICE: &str = "Please retry if you think this is a transient or recoverable error.";
const MAX_ERROR_BYTES: usize = 16 << 10;

/// Agents whose messages need to be read in their own way, by the name in `initialize`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum KnownAgent {
    ClaudeAcp,
    CodexAcp,
    Copilot,
    Kimi,
    #[default]
    Other,
}

impl KnownAgent {
    pub(super) fn from_name(name: &str) -> Self {
        match name {
            "@agentclientprotocol/claude-agent-acp" => Self::ClaudeAcp,
            "@agentclientprotocol/codex-acp" => Self::CodexAcp,
            "Copilot" => Self::Copilot,
            "Kimi Code CLI" => Self::Kimi,
            _ => Self::Other,
        }
    }
}

/// What a turn has shown so far.
#[derive(Debug, Default)]
pub(super) struct ObservedTurn {
    /// There was a message, a plan or a tool call.
    pub(super) has_output: bool,
    /// The agent reported that the turn failed.
    pub(super) has_failed: bool,
    pub(super) is_cancelled: bool,
    /// A permission was refused, and nothing came after the call.
    pub(super) ends_with_refusal: bool,
    /// The last text that the agent marks as an error or a warning.
    pub(super) remark: Option<String>,
    /// The beginning, in which goose reports errors.
    pub(super) last_message: Option<String>,
    /// The last chunk, if it begins as Copilot's message about an error.
    pub(super) error_chunk: Option<String>,
    /// The sum of the model calls that were reported one by one.
    pub(super) calls_usage: Option<Usage>,
}

impl ObservedTurn {
    /// Notes whether a chunk begins as an error of Copilot. Whatever follows shows that it was none.
    pub(super) fn note_chunk(&mut self, text: &str) {
        self.error_chunk = text.strip_prefix(COPILOT_ERROR).map(bounded_error);
    }

    /// Why the turn failed, if it did. The agent's name is not needed to see it.
    pub(super) fn failure(&self, result: &PromptResult<'_>) -> Option<AgentError<'static>> {
        let reported = match &result.failure {
            Some(title) => Some(Some(title.resolve().into_owned()).filter(|title| !title.is_empty())),
            None if self.has_failed => {
                Some(self.remark.clone().or_else(|| self.error_chunk.clone()).or(self.last_message.clone()))
            }
            None => self.goose_error().or_else(|| self.copilot_error(result)).map(Some),
        };
        if let Some(message) = reported {
            return Some(error(
                message.unwrap_or_else(|| "the agent reported a failure without a reason".to_owned()),
            ));
        }
        let is_zero = result.quota.is_some_and(|quota| quota.is_zero());
        Some(error(match &result.stop_reason {
            // Cline (cancelled), opencode and Qwen Code (end_turn) end the turn when a permission is refused.
            StopReason::Cancelled | StopReason::EndTurn if self.ends_with_refusal && !self.is_cancelled => {
                "the agent ended the turn because a permission was refused".to_owned()
            }
            StopReason::Cancelled => return None,
            StopReason::EndTurn if !self.has_output => {
                "the agent ended the turn without a message and without a tool call".to_owned()
            }
            // Gemini CLI after a refused or interrupted answer of the model.
            StopReason::EndTurn if is_zero => "the agent ended the turn and counts no tokens".to_owned(),
            StopReason::EndTurn => return None,
            StopReason::Other(reason) => format!("the agent stopped: {}", reason.resolve()),
            StopReason::Missing => "the agent ended the turn without a stop reason".to_owned(),
        }))
    }

    /// Goose reports errors as a message.
    fn goose_error(&self) -> Option<String> {
        let cause = self.last_message.as_deref()?.strip_prefix(GOOSE_ERROR)?;
        Some(cause.strip_suffix(GOOSE_ADVICE).unwrap_or(cause).trim().to_owned())
    }

    /// Copilot reports errors as a chunk, and then no tokens.
    fn copilot_error(&self, result: &PromptResult<'_>) -> Option<String> {
        let has_usage = result.usage.or(result.quota).is_some() || self.calls_usage.is_some();
        self.error_chunk.clone().filter(|_| !has_usage)
    }
}

pub(super) fn bounded_error(text: &str) -> String {
    beginning(text.trim(), MAX_ERROR_BYTES).to_owned()
}

fn error(message: String) -> AgentError<'static> {
    AgentError { code: code_of_text(&message), message: Text::owned(message) }
}
