//! Changes that are applied only if a task is as its caller expects: the expected attempt, and the result.

use delegator_domain::task::State;

/// Identifies one attempt to start a task; new for each attempt.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Nonce(String);

impl Nonce {
    pub fn from_random(bits: [u8; 16]) -> Nonce {
        Nonce(bits.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Parses the text of [`Nonce::as_str`].
    pub fn from_text(text: &str) -> Option<Nonce> {
        let is_ours = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_ours.then(|| Nonce(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The attempt and state that the caller expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub state: State,
    pub nonce: Nonce,
}

impl Attempt {
    pub fn starting(nonce: Nonce) -> Attempt {
        Attempt { state: State::Starting, nonce }
    }

    pub fn working(nonce: Nonce) -> Attempt {
        Attempt { state: State::Working, nonce }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Cas<T> {
    Applied(T),
    Lost(Lost),
}

/// The actual state; `None` if the task does not exist. If it is the expected state, the attempt is a
/// different one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    pub actual: Option<State>,
}
