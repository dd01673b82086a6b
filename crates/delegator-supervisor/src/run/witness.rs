//! The word that is said from inside a sandbox before anything else, taken out of what is kept.
//!
//! Without it nothing of the command has ever run, whatever was printed and whatever the exit code was. What stands
//! before it are the words of whoever made the sandbox; they stay.

/// Nothing says it later than this.
const MOST_BEFORE: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Witness {
    line: Vec<u8>,
    held: Vec<u8>,
    state: State,
    taken: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Heard,
    /// It was waited for too long.
    Silent,
}

impl Witness {
    /// Nothing to wait for is heard already.
    pub(crate) fn waiting_for(word: Option<&str>) -> Witness {
        let state = if word.is_some() { State::Waiting } else { State::Heard };
        Witness {
            line: format!("{}\n", word.unwrap_or_default()).into_bytes(),
            held: Vec::new(),
            state,
            taken: 0,
        }
    }

    /// What may be kept now that these bytes have come.
    pub(crate) fn pass(&mut self, bytes: &[u8], kept: &mut dyn FnMut(&[u8])) {
        if self.state != State::Waiting {
            return kept(bytes);
        }
        self.held.extend_from_slice(bytes);
        if let Some(at) = memchr::memmem::find(&self.held, &self.line) {
            (self.state, self.taken) = (State::Heard, self.line.len());
            kept(&self.held[..at]);
            kept(&self.held[at + self.line.len()..]);
        } else if self.held.len() > MOST_BEFORE {
            self.state = State::Silent;
            kept(&self.held);
        } else {
            return;
        }
        self.held = Vec::new();
    }

    /// The stream is over: what is still held is kept.
    pub(crate) fn finish(&mut self, kept: &mut dyn FnMut(&[u8])) {
        kept(&self.held);
        self.held = Vec::new();
    }

    /// How many bytes were not the command's own.
    pub(crate) fn taken(&self) -> u64 {
        self.taken as u64
    }

    pub(crate) fn was_heard(&self) -> bool {
        self.state == State::Heard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(word: Option<&str>, pieces: &[&[u8]]) -> (Vec<u8>, bool) {
        let mut witness = Witness::waiting_for(word);
        let mut all = Vec::new();
        for piece in pieces {
            witness.pass(piece, &mut |bytes| all.extend_from_slice(bytes));
        }
        witness.finish(&mut |bytes| all.extend_from_slice(bytes));
        (all, witness.was_heard())
    }

    #[test]
    fn the_word_is_heard_once_and_not_kept() {
        let cases = [
            (vec!["here\nok\n"], "ok\n", true),
            (vec!["WARNING: x\nhe", "re", "\nok\n"], "WARNING: x\nok\n", true),
            (vec!["here\nhere\n"], "here\n", true),
            (vec!["bwrap: no\n"], "bwrap: no\n", false),
            (vec!["here"], "here", false),
        ];
        for (pieces, expected, heard) in cases {
            let bytes: Vec<&[u8]> = pieces.iter().map(|piece| piece.as_bytes()).collect();
            assert_eq!(kept(Some("here"), &bytes), (expected.as_bytes().to_vec(), heard), "{pieces:?}");
        }
        assert_eq!(kept(None, &[b"here\n"]), (b"here\n".to_vec(), true));
    }

    #[test]
    fn it_is_not_waited_for_for_ever() {
        let noise = vec![b'x'; MOST_BEFORE + 1];
        let (all, heard) = kept(Some("here"), &[&noise, b"here\n"]);
        assert_eq!((all.len(), heard), (noise.len() + 5, false));
    }
}
