//! The idle dialect: messages as JSON lines, whenever the agent reports that it is idle: all that are queued
//! by then.
//!
//! The agent waits for the result of each tool call. A configured command gives it, else the user. An agent
//! that reports the result itself, or becomes idle, no longer waits.
//!
//! The prompt is the first message. An agent that was started before it reads anything may report that it is
//! idle although it still has the prompt to read: it then begins to work later ([`Step::Working`]).

use std::ffi::OsString;

use delegator_domain::message::{Delivery, MessageNumber};
use delegator_domain::question::{Answer, AnswerOption, OptionKind, Question, QuestionKind, QuestionNumber};
use delegator_transcript::wire::idle;
use delegator_transcript::{Event, IdleEvent, decode_text};

use super::open_questions::truncated;
use super::outbox::{Control, Conversation, Outbox, Step};

/// An agent that never waits for results must not fill our memory.
const MAX_OPEN_CALLS: usize = 32;
/// The option that makes the text of an answer the error of a tool call.
pub(crate) const TOOL_ERROR: &str = "error";

#[derive(Debug)]
pub(crate) struct IdleQueue {
    prompt: String,
    tool_command: Vec<OsString>,
    state: AgentState,
    /// Messages that it may not have read yet, the oldest first.
    unconfirmed: Vec<MessageNumber>,
    /// It has printed something since it was idle, which confirmed a message.
    has_confirmed: bool,
    calls: Vec<(QuestionNumber, String)>,
    last_question: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgentState {
    Working,
    Idle,
    /// It was idle, and gets the messages that are queued.
    Receiving,
    Done,
}

impl IdleQueue {
    pub(super) fn new(prompt: String, tool_command: Vec<OsString>) -> IdleQueue {
        let (state, unconfirmed) = (AgentState::Working, Vec::new());
        let calls = Vec::new();
        IdleQueue { prompt, tool_command, state, unconfirmed, has_confirmed: false, calls, last_question: 0 }
    }

    fn on_tool_call(
        &mut self,
        tool: &str,
        call_id: &str,
        arguments: Option<&str>,
        line: &str,
        out: &mut Outbox,
    ) {
        if self.calls.len() >= MAX_OPEN_CALLS {
            return out.send(idle::tool_result(call_id, Err("too many tool calls are open")));
        }
        self.last_question += 1;
        let number = QuestionNumber(self.last_question);
        self.calls.push((number, call_id.to_owned()));
        out.report(match self.tool_command.as_slice() {
            [] => Step::Question(tool_question(number, tool, arguments.unwrap_or("{}"))),
            command => {
                Step::ToolCalled { question: number, command: command.to_vec(), call: line.to_owned() }
            }
        });
    }

    fn withdraw_calls(&mut self, is_withdrawn: impl Fn(&str) -> bool, out: &mut Outbox) {
        for (number, _) in self.calls.extract_if(.., |(_, call_id)| is_withdrawn(call_id)) {
            out.report(Step::Withdrawn(number));
        }
    }

    fn on_answer(&mut self, question: QuestionNumber, answer: Answer, out: &mut Outbox) {
        let Some(index) = self.calls.iter().position(|(number, _)| *number == question) else { return };
        let (_, call_id) = self.calls.remove(index);
        let result = match (answer.option, &answer.text) {
            (None, Some(output)) => Ok(output.as_str()),
            (Some(_), error) => Err(error.as_deref().unwrap_or("the tool call failed")),
            (None, None) => Err("no result was given in time"),
        };
        out.send(idle::tool_result(&call_id, result));
    }
}

impl Conversation for IdleQueue {
    fn open(&mut self, out: &mut Outbox) {
        out.send(idle::message(&std::mem::take(&mut self.prompt)));
        out.report(Step::Ready);
    }

    fn on_line(&mut self, line: &str, out: &mut Outbox) {
        let event = decode_text(line);
        if matches!(event, Event::Blank) {
            return;
        }
        // It may read one message per turn, so a turn confirms only the oldest.
        if !self.has_confirmed && !self.unconfirmed.is_empty() {
            self.has_confirmed = true;
            out.report(Step::Accepted(self.unconfirmed.remove(0)));
        }
        match event {
            Event::Idle(IdleEvent::Done) => {
                self.withdraw_calls(|_| true, out);
                self.state = AgentState::Done;
                return out.report(Step::Done);
            }
            Event::Idle(IdleEvent::Idle) if self.state != AgentState::Done => {
                self.withdraw_calls(|_| true, out);
                self.state = AgentState::Idle;
                self.has_confirmed = false;
                return out.report(Step::TurnEnded);
            }
            _ if self.state == AgentState::Idle => {
                self.state = AgentState::Working;
                out.report(Step::Working);
            }
            _ => {}
        }
        match event {
            Event::Idle(IdleEvent::ToolCall { name, call_id, arguments }) if !call_id.is_empty() => {
                self.on_tool_call(&name.resolve(), &call_id.resolve(), arguments, line, out);
            }
            Event::Idle(IdleEvent::ToolResult { call_id: Some(call_id), .. }) => {
                let call_id = call_id.resolve();
                self.withdraw_calls(|open| open == call_id, out);
            }
            _ => {}
        }
    }

    fn on_control(&mut self, control: Control, out: &mut Outbox) {
        match control {
            Control::Message { number, text, .. } => {
                out.send(idle::message(&text));
                self.unconfirmed.push(number);
                self.state = AgentState::Receiving;
            }
            Control::QueueEmpty if self.state == AgentState::Receiving => self.state = AgentState::Working,
            Control::Answer { question, answer } => self.on_answer(question, answer, out),
            Control::Finish => out.close_stdin(),
            Control::Completed => {
                for message in self.unconfirmed.drain(..) {
                    out.report(Step::Accepted(message));
                }
            }
            // The dialect has no way to stop a turn.
            Control::QueueEmpty | Control::Interrupt => {}
        }
    }

    fn may_have_input(&self) -> bool {
        !self.unconfirmed.is_empty()
    }

    fn can_take(&self, delivery: Delivery) -> bool {
        delivery == Delivery::Next && matches!(self.state, AgentState::Idle | AgentState::Receiving)
    }
}

/// The question for the result of a tool call. Its text is the output.
fn tool_question(number: QuestionNumber, tool: &str, arguments: &str) -> Question {
    let label = "The call failed; the text says why".to_owned();
    Question {
        number,
        kind: QuestionKind::Question,
        title: format!("Result of the tool call {tool}"),
        detail: Some(truncated(arguments.to_owned())),
        options: vec![AnswerOption { id: TOOL_ERROR.to_owned(), label, kind: OptionKind::RejectOnce }],
        free_text: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(idle: &mut IdleQueue, line: &str) -> Vec<Step> {
        let mut out = Outbox::default();
        idle.on_line(line, &mut out);
        assert!(out.lines.is_empty(), "no line of the agent makes us send one");
        out.steps
    }

    fn send(idle: &mut IdleQueue, number: u32, text: &str) -> String {
        let mut out = Outbox::default();
        let number = MessageNumber(number);
        let message = Control::Message { number, text: text.to_owned(), delivery: Delivery::Next };
        idle.on_control(message, &mut out);
        String::from_utf8(out.lines.remove(0)).unwrap()
    }

    #[test]
    fn a_message_is_one_line_and_is_confirmed_by_the_next_output() {
        let mut idle = IdleQueue::new("first\nsecond".to_owned(), Vec::new());
        let mut out = Outbox::default();
        idle.open(&mut out);
        assert_eq!(out.lines, [br#"{"type":"tool_result","content":"first\nsecond"}"#.to_vec()]);
        assert!(!idle.can_take(Delivery::Next), "the prompt is being worked on");
        assert_eq!(after(&mut idle, r#"{"type":"agent_message","content":"hi"}"#), []);
        assert_eq!(after(&mut idle, r#"{"type":"idle"}"#), [Step::TurnEnded]);
        assert!(idle.can_take(Delivery::Next) && !idle.can_take(Delivery::Now));
        assert_eq!(send(&mut idle, 1, "go on"), r#"{"type":"tool_result","content":"go on"}"#);
        assert!(idle.can_take(Delivery::Next), "all that are queued by then");
        assert_eq!(send(&mut idle, 2, "and on"), r#"{"type":"tool_result","content":"and on"}"#);
        idle.on_control(Control::QueueEmpty, &mut out);
        assert!(!idle.can_take(Delivery::Next));
        assert_eq!(after(&mut idle, "  "), [], "a blank line confirms nothing");
        assert!(idle.may_have_input());
        let accepted = |number| Step::Accepted(MessageNumber(number));
        assert_eq!(after(&mut idle, "not json"), [accepted(1)]);
        assert_eq!(after(&mut idle, "of the same turn"), []);
        assert_eq!(after(&mut idle, r#"{"type":"idle"}"#), [Step::TurnEnded]);
        assert_eq!(after(&mut idle, r#"{"type":"idle"}"#), [accepted(2), Step::TurnEnded]);
    }

    fn answer(idle: &mut IdleQueue, number: u32, option: Option<&str>, text: Option<&str>) -> Vec<String> {
        let mut out = Outbox::default();
        let answer = Answer { option: option.map(str::to_owned), text: text.map(str::to_owned) };
        idle.on_control(Control::Answer { question: QuestionNumber(number), answer }, &mut out);
        out.lines.into_iter().map(|line| String::from_utf8(line).unwrap()).collect()
    }

    #[test]
    fn tool_calls_are_questions_and_their_answers_are_results() {
        let mut idle = IdleQueue::new("task".to_owned(), Vec::new());
        let call = |id: &str| {
            format!(r#"{{"type":"tool_call","name":"look_up","call_id":"{id}","arguments":{{"key":1}}}}"#)
        };
        for number in 1..=4 {
            let steps = after(&mut idle, &call(&format!("c{number}")));
            let [Step::Question(question)] = &steps[..] else { panic!("{steps:?}") };
            assert_eq!(
                (question.number.0, question.title.as_str()),
                (number, "Result of the tool call look_up")
            );
            assert_eq!(question.detail.as_deref(), Some(r#"{"key":1}"#));
        }
        let line = |text: &str| vec![text.to_owned()];
        let given = answer(&mut idle, 2, None, Some("a\nb"));
        assert_eq!(given, line(r#"{"type":"tool_result","call_id":"c2","output":"a\nb"}"#));
        let failed = answer(&mut idle, 1, Some("error"), Some("no such key"));
        assert_eq!(
            failed,
            line(r#"{"type":"tool_result","call_id":"c1","output":"","error":"no such key"}"#)
        );
        assert!(answer(&mut idle, 1, None, Some("again")).is_empty());
        let own = r#"{"type":"tool_result","call_id":"c3","output":"its own"}"#;
        assert_eq!(after(&mut idle, own), [Step::Withdrawn(QuestionNumber(3))]);
        let expected = [Step::Withdrawn(QuestionNumber(4)), Step::TurnEnded];
        assert_eq!(after(&mut idle, r#"{"type":"idle"}"#), expected);
        let steps = after(&mut idle, &call("c5"));
        assert!(matches!(&steps[..], [Step::Working, Step::Question(_)]), "{steps:?}");
        let expired = answer(&mut idle, 5, None, None);
        assert!(expired[0].contains(r#""error":"no result was given in time""#), "{expired:?}");
    }

    #[test]
    fn the_configured_command_gets_the_call() {
        let command: Vec<OsString> = vec!["/bin/tool".into(), "-x".into()];
        let mut idle = IdleQueue::new("task".to_owned(), command.clone());
        let call = r#"{"type":"tool_call","name":"t","call_id":"c","arguments":{}}"#.to_owned();
        let steps = after(&mut idle, &call);
        assert_eq!(steps, [Step::ToolCalled { question: QuestionNumber(1), command, call }]);
    }

    #[test]
    fn an_agent_may_work_after_it_was_idle_and_takes_nothing_after_done() {
        let mut idle = IdleQueue::new("task".to_owned(), Vec::new());
        assert_eq!(after(&mut idle, r#"{"type":"idle"}"#), [Step::TurnEnded]);
        assert_eq!(after(&mut idle, r#"{"type":"agent_message","content":"hi"}"#), [Step::Working]);
        assert_eq!(after(&mut idle, r#"{"type":"done"}"#), [Step::Done]);
        assert_eq!(after(&mut idle, r#"{"type":"idle"}"#), []);
        assert!(!idle.can_take(Delivery::Next));
    }
}
