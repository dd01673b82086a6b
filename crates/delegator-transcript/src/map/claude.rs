//! Translates lines of Claude Code into Codex exec events.
//!
//! The first `system/init` names the thread; each begins a turn. A call of a tool is joined with its result
//! by the id of the call. Steps of the plan come one by one, as calls whose result contains the number of the
//! step. A turn reports its own tokens and cost; the effects contain the totals of the stream. Lines of
//! sub-agents are left out: their work is part of the call that started them.

use super::effect::{Effect, Effects, MapWarning, UnmappedReason, tool_result};
use super::pending::{Pending, Plan};
use crate::event::{
    AgentError, ChangeKind, CommandExecution, ErrorCode, FileChange, ItemDetails, ItemPhase, ItemStatus,
    McpToolCall, ThreadEvent, Todo, TurnOutcome, Usage,
};
use crate::json::Text;
use crate::wire::claude::{
    Block, ClaudeLine, ControlRequest, PermissionRequest, TaskChange, ToolCall, ToolKind, ToolResult,
    TurnResult,
};

const MAX_PLAN_STEPS: usize = 1024;
const MAX_STEP_BYTES: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct ClaudeMapper {
    thread_is_named: bool,
    open_calls: Pending<OpenCall>,
    /// The calls of open permission requests.
    calls_awaiting_permission: Pending<String>,
    /// Calls whose permission request an interrupt withdrew: they never ran.
    withdrawn_calls: Pending<()>,
    plan: Plan,
    /// The steps of the plan with their numbers.
    steps: Vec<(String, Todo<'static>)>,
    usage: Usage,
    cost: f64,
    session_cost: f64,
    /// The error that the next `result` repeats without its code.
    error_code: Option<ErrorCode>,
    is_limit_exceeded: bool,
}

/// A call whose result has not arrived yet.
#[derive(Debug)]
enum OpenCall {
    /// The time is unknown of a call that waits for permission.
    Item {
        id: Text<'static>,
        details: ItemDetails<'static>,
        started_at_ms: Option<u64>,
    },
    PlanStep(TaskChange<'static>),
}

impl ClaudeMapper {
    pub(super) fn apply<'a>(
        &mut self,
        line: ClaudeLine<'a>,
        turn_is_open: bool,
        effects: &mut Effects<'_, 'a>,
    ) {
        match line {
            ClaudeLine::Init { session_id } => self.begin_turn(session_id, turn_is_open, effects),
            ClaudeLine::Retry { attempt, max_attempts, error } => {
                let message = format!("Reconnecting... {attempt}/{max_attempts} ({})", error.resolve());
                effects.emit(ThreadEvent::Error { message: Text::owned(message) });
            }
            ClaudeLine::Assistant(blocks) => {
                blocks.into_iter().for_each(|block| self.on_block(block, effects));
            }
            ClaudeLine::ToolResults(results) => {
                results.into_iter().for_each(|result| self.end_call(result, effects));
            }
            ClaudeLine::Result(result) => self.end_turn(*result, turn_is_open, effects),
            ClaudeLine::ApiError(code) => self.error_code = code,
            ClaudeLine::RateLimit(limit) => {
                self.is_limit_exceeded = limit.is_exceeded;
                effects.push(Effect::LimitReset(limit.resets_at.filter(|_| limit.is_exceeded)));
                effects.unmapped(UnmappedReason::Context);
            }
            ClaudeLine::SubAgent => effects.unmapped(UnmappedReason::Ignored),
            ClaudeLine::ControlRequest { request_id, request } => {
                if let ControlRequest::Permission(PermissionRequest { call_id: Some(call_id), .. }) = request
                {
                    let (call_id, bytes) = (call_id.resolve().into_owned(), call_id.len());
                    if let Some(OpenCall::Item { started_at_ms, .. }) = self.open_calls.get_mut(&call_id) {
                        *started_at_ms = None;
                    }
                    self.calls_awaiting_permission.insert(&request_id.resolve(), call_id, bytes);
                }
                effects.unmapped(UnmappedReason::Context);
            }
            ClaudeLine::ControlCancel { request_id } => {
                if let Some(call_id) = self.calls_awaiting_permission.remove(&request_id.resolve()) {
                    self.withdrawn_calls.insert(&call_id, (), 0);
                }
                effects.unmapped(UnmappedReason::Context);
            }
            ClaudeLine::Replay | ClaudeLine::ControlResponse { .. } | ClaudeLine::Other => {
                effects.unmapped(UnmappedReason::Context);
            }
        }
    }

    fn begin_turn<'a>(&mut self, session_id: Text<'a>, turn_is_open: bool, effects: &mut Effects<'_, 'a>) {
        if !std::mem::replace(&mut self.thread_is_named, true) {
            effects.emit(ThreadEvent::ThreadStarted { thread_id: session_id });
        }
        self.error_code = None;
        if turn_is_open {
            effects.unmapped(UnmappedReason::Redundant);
        } else {
            effects.emit(ThreadEvent::TurnStarted);
        }
    }

    fn on_block<'a>(&mut self, block: Block<'a>, effects: &mut Effects<'_, 'a>) {
        match block {
            Block::Text(text) if !is_blank(&text) => {
                effects.complete_item(ItemDetails::AgentMessage { text })
            }
            Block::Thinking(text) if !is_blank(&text) => {
                effects.complete_item(ItemDetails::Reasoning { text });
            }
            Block::Text(_) | Block::Thinking(_) => {}
            Block::ToolUse(call) => self.begin_call(call, effects),
        }
    }

    fn begin_call<'a>(&mut self, call: ToolCall<'a>, effects: &mut Effects<'_, 'a>) {
        let (bytes, details) = match call.kind {
            ToolKind::Plan(todos) => return self.plan.update(todos, effects),
            ToolKind::PlanStep(change) => {
                let change = change.into_owned();
                let bytes = change.subject.as_ref().map_or(0, Text::len);
                return self.open_calls.insert(&call.id.resolve(), OpenCall::PlanStep(change), bytes);
            }
            ToolKind::Command { command } => {
                let execution = CommandExecution::started(command.into_owned());
                (execution.command.len(), ItemDetails::CommandExecution(execution))
            }
            ToolKind::Edit { path } => {
                let change = FileChange::of_path(path.into_owned(), ChangeKind::Update);
                (change.path.len(), ItemDetails::FileChange { changes: vec![change] })
            }
            ToolKind::WebSearch { query } => {
                (query.len(), ItemDetails::WebSearch { query: query.into_owned(), action: None })
            }
            ToolKind::Other { server, tool, input } => {
                let call = McpToolCall {
                    server: server.map_or(Text::plain("agent"), Text::into_owned),
                    tool: tool.into_owned(),
                    arguments: input.map(Text::owned),
                    ..McpToolCall::default()
                };
                (input.map_or(0, str::len), ItemDetails::McpToolCall(call))
            }
        };
        let id = effects.ids.next();
        let open_call =
            OpenCall::Item { id: id.clone(), details: details.clone(), started_at_ms: call.at_ms };
        self.open_calls.insert(&call.id.resolve(), open_call, bytes);
        let has_status = !matches!(details, ItemDetails::WebSearch { .. });
        effects.item(ItemPhase::Started, id, has_status.then_some(ItemStatus::InProgress), details);
    }

    fn end_call<'a>(&mut self, mut result: ToolResult<'a>, effects: &mut Effects<'_, 'a>) {
        let call_id = result.call_id.clone();
        let call_id = call_id.resolve();
        result.is_declined |= self.withdrawn_calls.remove(&call_id).is_some();
        match self.open_calls.remove(&call_id) {
            Some(OpenCall::Item { id, details, started_at_ms }) => {
                let ended_at_ms = result.at_ms.filter(|_| !result.is_running);
                let (status, mut details) = finished_item(details, result);
                if let ItemDetails::CommandExecution(command) = &mut details {
                    command.duration_ms = started_at_ms.zip(ended_at_ms).map(duration_ms);
                }
                effects.item(ItemPhase::Completed, id, status, details);
            }
            Some(OpenCall::PlanStep(change)) if !result.is_error => {
                self.change_step(change, result.task_id);
                let todos = self.steps.iter().map(|(_, todo)| todo.clone()).collect();
                self.plan.update(todos, effects);
            }
            Some(OpenCall::PlanStep(_)) => {}
            // The result of `TodoWrite`, whose call is not stored, is one of these; it says nothing.
            None if !result.is_error => {}
            None => {
                let call_id = call_id.into_owned();
                effects.push(Effect::Warn(MapWarning::CallEndWithoutBegin { call_id }));
                effects.unmapped(UnmappedReason::Redundant);
            }
        }
    }

    fn change_step(&mut self, change: TaskChange<'static>, new_number: Option<Text<'_>>) {
        let status = change.status.as_ref().map(Text::resolve);
        let Some(number) = change.task_id else {
            let number = new_number.map(|number| number.resolve().into_owned());
            let number = number.unwrap_or_else(|| (self.steps.len() + 1).to_string());
            let subject = change.subject.filter(|subject| subject.len() <= MAX_STEP_BYTES);
            if let (Some(text), true) = (subject, self.steps.len() < MAX_PLAN_STEPS) {
                self.steps.push((number, Todo { text, completed: false }));
            }
            return;
        };
        let number = number.resolve();
        if status.as_deref() == Some("deleted") {
            return self.steps.retain(|(step, _)| *step != number);
        }
        let Some((_, todo)) = self.steps.iter_mut().find(|(step, _)| *step == number) else { return };
        if let Some(status) = status {
            todo.completed = status == "completed";
        }
        if let Some(subject) = change.subject.filter(|subject| subject.len() <= MAX_STEP_BYTES) {
            todo.text = subject;
        }
    }

    fn end_turn<'a>(&mut self, result: TurnResult<'a>, turn_is_open: bool, effects: &mut Effects<'_, 'a>) {
        // A session that cannot be resumed has a `result` and nothing before it.
        if !turn_is_open {
            effects.emit(ThreadEvent::TurnStarted);
        }
        self.plan.complete(effects);
        self.usage = self.usage.plus(result.usage);
        effects.push(Effect::Usage(self.usage));
        if let Some(session_cost) = result.session_cost {
            self.cost += result.cost.unwrap_or((session_cost - self.session_cost).max(0.0));
            self.session_cost = session_cost;
            effects.push(Effect::Cost(self.cost));
        }
        let reported_code = self.error_code.take();
        match result.outcome {
            TurnOutcome::Completed => {
                if let Some(json) = result.structured_output {
                    effects.complete_item(ItemDetails::AgentMessage { text: Text::plain(json) });
                }
                effects.emit(ThreadEvent::TurnCompleted { usage: Some(self.usage) });
            }
            TurnOutcome::Interrupted => effects.push(Effect::Interrupted),
            TurnOutcome::Failed(AgentError { message, code }) => {
                let code = self.limit_code(reported_code.or(code));
                effects.emit(ThreadEvent::TurnFailed { error: AgentError { message, code } });
            }
        }
    }

    /// A refused request is about the usage limit if the agent reported that it is exceeded.
    fn limit_code(&self, code: Option<ErrorCode>) -> Option<ErrorCode> {
        match code {
            Some(ErrorCode::RateLimit) if self.is_limit_exceeded => Some(ErrorCode::UsageLimit),
            _ => code,
        }
    }
}

/// Between two times of a day; the second may be on the next day.
fn duration_ms((started_at_ms, ended_at_ms): (u64, u64)) -> u64 {
    const DAY_MS: u64 = 86_400_000;
    (ended_at_ms + DAY_MS).saturating_sub(started_at_ms) % DAY_MS
}

fn is_blank(text: &Text<'_>) -> bool {
    text.resolve().trim().is_empty()
}

/// The status and the details of an item whose call has ended.
fn finished_item<'a>(
    details: ItemDetails<'static>,
    result: ToolResult<'a>,
) -> (Option<ItemStatus>, ItemDetails<'a>) {
    let status = ItemStatus::of_result(!result.is_error);
    match details {
        ItemDetails::CommandExecution(command) => {
            let status = if result.is_declined { ItemStatus::Declined } else { status };
            (Some(status), ItemDetails::CommandExecution(finished_command(command, result)))
        }
        ItemDetails::FileChange { mut changes } => {
            // The call names one file.
            for change in &mut changes {
                change.kind = if result.is_new_file { ChangeKind::Add } else { change.kind };
                change.diff = result.diff.clone().into_owned();
            }
            (Some(status), ItemDetails::FileChange { changes })
        }
        ItemDetails::McpToolCall(call) => {
            let json = tool_result(&result.text, result.structured);
            let error = result.is_error.then_some(result.text);
            (Some(status), ItemDetails::McpToolCall(McpToolCall { result: Some(json), error, ..call }))
        }
        other => (None, other),
    }
}

/// A failed command's result begins with `Exit code N`. Without it, a failed command has no exit code: it was
/// stopped, or never ran.
fn finished_command<'a>(command: CommandExecution<'static>, result: ToolResult<'a>) -> CommandExecution<'a> {
    if !result.is_error {
        let exit_code = (!result.is_running).then_some(0);
        return CommandExecution::ended(command.command, result.text, exit_code);
    }
    let split =
        split_exit_code(&result.text.resolve()).map(|(code, output)| (Some(code), Text::owned(output)));
    let (exit_code, output) = split.unwrap_or((None, result.text));
    CommandExecution::ended(command.command, output, exit_code)
}

fn split_exit_code(text: &str) -> Option<(i32, &str)> {
    let text = text.strip_prefix("Error: ").unwrap_or(text).strip_prefix("Exit code ")?;
    let (code, output) = text.split_once('\n').unwrap_or((text, ""));
    Some((code.trim().parse().ok()?, output))
}
