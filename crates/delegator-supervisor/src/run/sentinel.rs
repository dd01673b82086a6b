//! The word that is said from inside a sandbox before anything else, taken out of what is kept.
//!
//! Without it nothing of the command has ever run, whatever was printed and whatever the exit code was. What stands
//! before it are the words of whoever made the sandbox; they stay.

/// Nothing says it later than this.
const MAX_BEFORE: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct SentinelFilter {
    line: Vec<u8>,
    pending: Vec<u8>,
    state: SentinelState,
    removed: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SentinelState {
    Waiting,
    Found,
    /// It was waited for too long.
    GivenUp,
}

impl SentinelFilter {
    /// Nothing to wait for is heard already.
    pub(crate) fn new(sentinel: Option<&str>) -> SentinelFilter {
        let state = if sentinel.is_some() { SentinelState::Waiting } else { SentinelState::Found };
        SentinelFilter {
            line: format!("{}\n", sentinel.unwrap_or_default()).into_bytes(),
            pending: Vec::new(),
            state,
            removed: 0,
        }
    }

    /// What may be kept now that these bytes have come.
    pub(crate) fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(&[u8])) {
        if self.state != SentinelState::Waiting {
            return sink(bytes);
        }
        self.pending.extend_from_slice(bytes);
        if let Some(at) = memchr::memmem::find(&self.pending, &self.line) {
            (self.state, self.removed) = (SentinelState::Found, self.line.len());
            sink(&self.pending[..at]);
            sink(&self.pending[at + self.line.len()..]);
        } else if self.pending.len() > MAX_BEFORE {
            self.state = SentinelState::GivenUp;
            sink(&self.pending);
        } else {
            return;
        }
        self.pending = Vec::new();
    }

    /// The stream is over: what is still held is kept.
    pub(crate) fn finish(&mut self, sink: &mut dyn FnMut(&[u8])) {
        sink(&self.pending);
        self.pending = Vec::new();
    }

    /// How many bytes were not the command's own.
    pub(crate) fn removed_bytes(&self) -> u64 {
        self.removed as u64
    }

    pub(crate) fn is_found(&self) -> bool {
        self.state == SentinelState::Found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter_all(sentinel: Option<&str>, pieces: &[&[u8]]) -> (Vec<u8>, bool) {
        let mut filter = SentinelFilter::new(sentinel);
        let mut all = Vec::new();
        for piece in pieces {
            filter.push(piece, &mut |bytes| all.extend_from_slice(bytes));
        }
        filter.finish(&mut |bytes| all.extend_from_slice(bytes));
        (all, filter.is_found())
    }

    #[test]
    fn first_sentinel_line_is_removed() {
        let cases = [
            (vec!["here\nok\n"], "ok\n", true),
            (vec!["WARNING: x\nhe", "re", "\nok\n"], "WARNING: x\nok\n", true),
            (vec!["here\nhere\n"], "here\n", true),
            (vec!["bwrap: no\n"], "bwrap: no\n", false),
            (vec!["here"], "here", false),
        ];
        for (pieces, expected, found) in cases {
            let bytes: Vec<&[u8]> = pieces.iter().map(|piece| piece.as_bytes()).collect();
            assert_eq!(filter_all(Some("here"), &bytes), (expected.as_bytes().to_vec(), found), "{pieces:?}");
        }
        assert_eq!(filter_all(None, &[b"here\n"]), (b"here\n".to_vec(), true));
    }

    #[test]
    fn search_is_given_up_after_the_maximum() {
        let noise = vec![b'x'; MAX_BEFORE + 1];
        let (all, found) = filter_all(Some("here"), &[&noise, b"here\n"]);
        assert_eq!((all.len(), found), (noise.len() + 5, false));
    }
}
