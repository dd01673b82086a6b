//! All of the input at once: `codex exec` and plain programs. They have no turns, ask nothing and take no
//! messages.

use delegator_domain::message::Delivery;

use super::outbox::{Control, Conversation, Outbox, Step};

#[derive(Debug)]
pub(crate) struct Once {
    stdin: Vec<u8>,
}

impl Once {
    pub(super) fn new(stdin: Vec<u8>) -> Once {
        Once { stdin }
    }
}

impl Conversation for Once {
    fn open(&mut self, out: &mut Outbox) {
        out.send(std::mem::take(&mut self.stdin));
        out.close_stdin();
        out.report(Step::Ready);
    }

    fn on_line(&mut self, _line: &str, _out: &mut Outbox) {}

    fn on_control(&mut self, _control: Control, _out: &mut Outbox) {}

    fn can_take(&self, _delivery: Delivery) -> bool {
        false
    }
}
