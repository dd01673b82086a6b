//! The idle dialect: messages as JSON lines, one whenever the agent reports that it is idle.
//!
//! The prompt is the first message. An agent that was started before it reads anything may report that it is idle although it
//! still has the prompt to read: it then begins to work later ([`Step::Working`]).

use delegator_domain::message::{Delivery, MessageNumber};
use delegator_transcript::wire::idle;
use delegator_transcript::{Event, IdleEvent, decode_text};

use super::{Control, Outbox, Step};

#[derive(Debug)]
pub(crate) struct IdleQueue {
    prompt: String,
    state: AgentState,
    /// The last message, until the agent prints something.
    unconfirmed: Option<MessageNumber>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgentState {
    Working,
    Idle,
    /// It takes no more messages.
    Done,
}

impl IdleQueue {
    pub(super) fn new(prompt: String) -> IdleQueue {
        IdleQueue { prompt, state: AgentState::Working, unconfirmed: None }
    }

    pub(super) fn open(&mut self, out: &mut Outbox) {
        out.send(idle::message(&std::mem::take(&mut self.prompt)));
        out.report(Step::Ready);
    }

    pub(super) fn on_line(&mut self, line: &str, out: &mut Outbox) {
        let event = decode_text(line);
        if matches!(event, Event::Blank) {
            return;
        }
        if let Some(message) = self.unconfirmed.take() {
            out.report(Step::Accepted(message));
        }
        match event {
            Event::Idle(IdleEvent::Done) => {
                self.state = AgentState::Done;
                out.report(Step::Done);
            }
            Event::Idle(IdleEvent::Idle) if self.state != AgentState::Done => {
                self.state = AgentState::Idle;
                out.report(Step::TurnEnded);
            }
            _ if self.state == AgentState::Idle => {
                self.state = AgentState::Working;
                out.report(Step::Working);
            }
            _ => {}
        }
    }

    pub(super) fn on_control(&mut self, control: Control, out: &mut Outbox) {
        match control {
            Control::Message { number, text, .. } => {
                out.send(idle::message(&text));
                self.unconfirmed = Some(number);
                self.state = AgentState::Working;
            }
            Control::Finish => out.close_stdin(),
            // The dialect has neither questions nor a way to stop a turn.
            Control::Answer { .. } | Control::Interrupt => {}
        }
    }

    pub(super) fn can_take(&self, delivery: Delivery) -> bool {
        delivery == Delivery::Next && self.state == AgentState::Idle
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
        let mut idle = IdleQueue::new("first\nsecond".to_owned());
        let mut out = Outbox::default();
        idle.open(&mut out);
        assert_eq!(out.lines, [br#"{"type":"tool_result","content":"first\nsecond"}"#.to_vec()]);
        assert!(!idle.can_take(Delivery::Next), "the prompt is being worked on");
        assert_eq!(after(&mut idle, r#"{"type":"agent_message","content":"hi"}"#), []);
        assert_eq!(after(&mut idle, r#"{"type":"idle"}"#), [Step::TurnEnded]);
        assert!(idle.can_take(Delivery::Next) && !idle.can_take(Delivery::Now));
        assert_eq!(send(&mut idle, 1, "go on"), r#"{"type":"tool_result","content":"go on"}"#);
        assert!(!idle.can_take(Delivery::Next));
        assert_eq!(after(&mut idle, "  "), [], "a blank line confirms nothing");
        assert_eq!(after(&mut idle, "not json"), [Step::Accepted(MessageNumber(1))]);
    }

    #[test]
    fn an_agent_may_work_after_it_was_idle_and_takes_nothing_after_done() {
        let mut idle = IdleQueue::new("task".to_owned());
        assert_eq!(after(&mut idle, r#"{"type":"idle"}"#), [Step::TurnEnded]);
        assert_eq!(after(&mut idle, r#"{"type":"agent_message","content":"hi"}"#), [Step::Working]);
        assert_eq!(after(&mut idle, r#"{"type":"done"}"#), [Step::Done]);
        assert_eq!(after(&mut idle, r#"{"type":"idle"}"#), []);
        assert!(!idle.can_take(Delivery::Next));
    }
}
