//! All of the input at once: `codex exec` and plain programs.

use super::{Outbox, Step};

#[derive(Debug)]
pub(crate) struct Once {
    stdin: Vec<u8>,
}

impl Once {
    pub(super) fn new(stdin: Vec<u8>) -> Once {
        Once { stdin }
    }

    pub(super) fn open(&mut self, out: &mut Outbox) {
        out.send(std::mem::take(&mut self.stdin));
        out.close_stdin();
        out.report(Step::Ready);
    }
}
