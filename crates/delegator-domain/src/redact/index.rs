//! Finds candidate positions: one automaton over the anchors of all values and formats.
//!
//! The automaton ignores case, so that `authorization` needs only one pattern; matchers check the exact text.
//! It reports the longest anchor at the leftmost position. Any other anchor that matches there is a prefix of
//! that one, so each anchor includes the candidates of its prefixes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};

use super::credential_formats::{ANCHORS, TokenFormat};
use super::needle;
use super::secret_values::is_bare_json;
use super::url_and_header::AUTHORIZATION;

/// With more anchors than this, the fast automaton would use too much memory.
const MAX_DFA_ANCHORS: usize = 2000;

pub(super) struct Needle {
    pub(super) text: String,
    /// Whether the text could be a JSON value outside a string.
    pub(super) bare: bool,
}

/// The formats and values to try at an anchor.
#[derive(Clone, Default)]
pub(super) struct Candidates {
    pub(super) formats: Vec<TokenFormat>,
    pub(super) needles: Vec<usize>,
}

pub(super) struct Index {
    /// In lower case, sorted.
    anchors: Vec<Vec<u8>>,
    /// Built from the anchors by its first use, because that takes longer than everything else here.
    finder: OnceLock<AhoCorasick>,
    /// Those of each anchor.
    candidates: Vec<Candidates>,
    pub(super) needles: Vec<Needle>,
    /// Anchors in their original case, sorted, to recognise the start of one at the end of the buffer.
    exact: Vec<Vec<u8>>,
    first_bytes: [bool; 256],
    longest_anchor: usize,
}

impl Index {
    pub(super) fn new(needles: BTreeSet<String>) -> Self {
        let mut exact: BTreeSet<Vec<u8>> = ANCHORS.iter().map(|(anchor, _)| anchor.to_vec()).collect();
        let mut groups: BTreeMap<Vec<u8>, Candidates> = BTreeMap::new();
        for (anchor, format) in ANCHORS {
            groups.entry(anchor.to_ascii_lowercase()).or_default().formats.push(*format);
        }
        let needles: Vec<Needle> =
            needles.into_iter().map(|text| Needle { bare: is_bare_json(&text), text }).collect();
        for (index, needle) in needles.iter().enumerate() {
            for anchor in needle::anchors(&needle.text) {
                groups.entry(anchor.to_ascii_lowercase()).or_default().needles.push(index);
                exact.insert(anchor);
            }
        }
        let mut first_bytes = [false; 256];
        for anchor in &exact {
            first_bytes[usize::from(anchor[0])] = true;
        }
        first_bytes[usize::from(b'A')] = true;
        let longest_anchor = exact.iter().map(Vec::len).max().unwrap_or_default();
        let candidates = groups.keys().map(|anchor| with_prefixes(anchor, &groups)).collect();
        let exact = exact.into_iter().collect();
        let anchors = groups.into_keys().collect();
        Self { anchors, finder: OnceLock::new(), candidates, needles, exact, first_bytes, longest_anchor }
    }

    /// Whether it masks exactly these values.
    pub(super) fn has_needles(&self, needles: &BTreeSet<String>) -> bool {
        needles.iter().eq(self.needles.iter().map(|needle| &needle.text))
    }

    pub(super) fn finder(&self) -> &AhoCorasick {
        self.finder.get_or_init(|| build_finder(&self.anchors))
    }

    /// Whether some value could stand outside a string in JSON.
    pub(super) fn has_bare(&self) -> bool {
        self.needles.iter().any(|needle| needle.bare)
    }

    /// The first candidate position from `from` on, and what to try there.
    pub(super) fn next_candidate(&self, bytes: &[u8], from: usize) -> Option<(usize, &Candidates)> {
        let found = self.finder().find(Input::new(bytes).range(from..))?;
        Some((found.start(), &self.candidates[found.pattern().as_usize()]))
    }

    /// The first position from `from` on where the remaining bytes are the start of an anchor.
    pub(super) fn partial_anchor(&self, bytes: &[u8], from: usize) -> usize {
        let start = from.max(bytes.len().saturating_sub(self.longest_anchor - 1));
        (start..bytes.len())
            .find(|&at| self.first_bytes[usize::from(bytes[at])] && self.is_partial_anchor(&bytes[at..]))
            .unwrap_or(bytes.len())
    }

    fn is_partial_anchor(&self, tail: &[u8]) -> bool {
        let after = self.exact.partition_point(|anchor| anchor.as_slice() <= tail);
        self.exact.get(after).is_some_and(|anchor| anchor.starts_with(tail))
            || (tail.len() < AUTHORIZATION.len() && AUTHORIZATION[..tail.len()].eq_ignore_ascii_case(tail))
    }
}

fn with_prefixes(anchor: &[u8], groups: &BTreeMap<Vec<u8>, Candidates>) -> Candidates {
    let mut all = Candidates::default();
    for candidates in (1..=anchor.len()).filter_map(|length| groups.get(&anchor[..length])) {
        all.formats.extend(&candidates.formats);
        all.needles.extend(&candidates.needles);
    }
    all.formats.dedup();
    all.needles.sort_unstable();
    all.needles.dedup();
    all
}

fn build_finder(anchors: &[Vec<u8>]) -> AhoCorasick {
    let kind = (anchors.len() <= MAX_DFA_ANCHORS).then_some(AhoCorasickKind::DFA);
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .kind(kind)
        .build(anchors)
        // Building fails only above 2^31 states. Without the automaton no text may pass.
        .unwrap_or_else(|error| unreachable!("anchors are a few bytes each: {error}"))
}
