//! Finds the sentinel line that a sandboxed verification prints first, and removes it from the stored output.
//!
//! Without the sentinel the command itself never ran, whatever was printed and whatever the exit code is.
//! Output before it comes from the sandbox program and is stored.

/// The sentinel is not expected after this many bytes.
const MAX_BEFORE: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct SentinelFilter {
    line: Vec<u8>,
    pending: Vec<u8>,
    state: SentinelState,
    /// Number of bytes that were not the command's own output.
    pub(crate) removed_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SentinelState {
    Waiting,
    Found,
    GivenUp,
}

impl SentinelFilter {
    /// Without a sentinel to search for, it counts as found.
    pub(crate) fn new(sentinel: Option<&str>) -> SentinelFilter {
        let state = if sentinel.is_some() { SentinelState::Waiting } else { SentinelState::Found };
        SentinelFilter {
            line: format!("{}\n", sentinel.unwrap_or_default()).into_bytes(),
            pending: Vec::new(),
            state,
            removed_bytes: 0,
        }
    }

    /// Adds bytes and passes everything that may be stored to `sink`.
    pub(crate) fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(&[u8])) {
        if self.state != SentinelState::Waiting {
            return sink(bytes);
        }
        self.pending.extend_from_slice(bytes);
        if let Some(at) = memchr::memmem::find(&self.pending, &self.line) {
            (self.state, self.removed_bytes) = (SentinelState::Found, self.line.len() as u64);
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

    pub(crate) fn finish(&mut self, sink: &mut dyn FnMut(&[u8])) {
        sink(&self.pending);
        self.pending = Vec::new();
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
