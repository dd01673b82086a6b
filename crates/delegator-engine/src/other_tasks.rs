//! Telling supervisors of other tasks from what an agent left behind.
//!
//! An agent may delegate, too: the supervisor of that task then hangs somewhere below the agent, or comes to us when its
//! parent ends. It is known by the words it was started with, and they are believed only if the registry knows that very
//! attempt.

use delegator_domain::task::{State, TaskId};
use delegator_registry::{Nonce, Registry};

use crate::promote::SUPERVISE;

/// Whether the process supervises a task other than this one.
pub(crate) fn supervises_another(registry: &Registry, own: &TaskId, pid: i32) -> bool {
    let Ok(line) = std::fs::read(format!("/proc/{pid}/cmdline")) else { return false };
    let Some((id, nonce)) = attempt(&line) else { return false };
    let is_known = |task: &delegator_registry::Task| {
        matches!(task.state, State::Starting | State::Working) && task.nonce.as_ref() == Some(&nonce)
    };
    id != *own && registry.get(&id).ok().flatten().as_ref().is_some_and(is_known)
}

/// The attempt a command line names, if it is one of ours.
fn attempt(line: &[u8]) -> Option<(TaskId, Nonce)> {
    let words: Vec<&[u8]> = line.strip_suffix(b"\0")?.split(|byte| *byte == 0).collect();
    let [_, word, id, nonce] = words.as_slice() else { return None };
    let text = |word| std::str::from_utf8(word).ok();
    (*word == SUPERVISE.as_bytes())
        .then(|| Some((text(id)?.parse().ok()?, Nonce::from_text(text(nonce)?)?)))
        .flatten()
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::Place;

    use super::*;

    #[test]
    fn only_our_own_words_name_an_attempt() {
        let (id, nonce) = (TaskId::from_random(Place::Local, [3; 16]), Nonce::from_random([5; 16]));
        let line = |words: &[&str]| {
            words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect::<Vec<u8>>()
        };
        let ours = ["/proc/self/exe", SUPERVISE, id.as_str(), nonce.as_str()];
        assert_eq!(attempt(&line(&ours)), Some((id.clone(), nonce.clone())));
        for other in [
            vec!["/proc/self/exe", SUPERVISE, id.as_str()],
            vec!["/proc/self/exe", "status", id.as_str(), nonce.as_str()],
            vec!["/proc/self/exe", SUPERVISE, "T-local-1", nonce.as_str()],
            vec!["/proc/self/exe", SUPERVISE, id.as_str(), "x"],
            vec!["/proc/self/exe", SUPERVISE, id.as_str(), nonce.as_str(), "more"],
        ] {
            assert_eq!(attempt(&line(&other)), None, "{other:?}");
        }
        assert_eq!(attempt(b""), None);
    }
}
