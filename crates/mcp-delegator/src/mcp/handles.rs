//! The tasks extension: handles for `run` and `wait` that outlive the server.
//!
//! Nothing is kept here. The handle of a run is the task itself; the handle of a wait spells out what is awaited, how
//! and until when. So whatever server is asked about it, it reads the same registry and says the same.

use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_engine::resident::Goal;

use crate::cli::globals::Format;
use crate::registry::stay::Staying;

/// What a handle stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handle {
    Run(TaskId),
    Wait(Awaited),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaited {
    pub ids: Vec<TaskId>,
    pub goal: Goal,
    pub format: Format,
    /// Milliseconds since 1970; `None`: as long as it takes.
    pub until_ms: Option<u64>,
}

impl Awaited {
    pub fn of(staying: &Staying, format: Format) -> Awaited {
        let until = |within: Duration| now_ms().saturating_add(milliseconds(within));
        Awaited { ids: staying.ids.clone(), goal: staying.goal, format, until_ms: staying.within.map(until) }
    }

    pub fn is_over(&self) -> bool {
        self.until_ms.is_some_and(|until| now_ms() >= until)
    }
}

impl Handle {
    pub fn to_text(&self) -> String {
        match self {
            Handle::Run(id) => id.to_string(),
            Handle::Wait(Awaited { ids, goal, format, until_ms }) => {
                let goal = if *goal == Goal::Any { "any" } else { "all" };
                let until = until_ms.map(|until| until.to_string()).unwrap_or_default();
                let ids: Vec<&str> = ids.iter().map(TaskId::as_str).collect();
                format!("wait.{goal}.{}.{until}.{}", format.name(), ids.join("+"))
            }
        }
    }

    pub fn from_text(text: &str) -> Option<Handle> {
        if let Ok(id) = text.parse() {
            return Some(Handle::Run(id));
        }
        let parts: Vec<&str> = text.split('.').collect();
        let ["wait", goal, format, until, ids] = parts.as_slice() else { return None };
        let goal = match *goal {
            "any" => Goal::Any,
            "all" => Goal::All,
            _ => return None,
        };
        let until_ms = match *until {
            "" => None,
            until => Some(until.parse().ok()?),
        };
        let format =
            Format::named(format).filter(|format| matches!(format, Format::Json | Format::Markdown))?;
        let ids = ids.split('+').map(|id| id.parse().ok()).collect::<Option<Vec<TaskId>>>()?;
        Some(Handle::Wait(Awaited { ids, goal, format, until_ms }))
    }
}

fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use delegator_domain::task::Place;

    use super::*;

    #[test]
    fn a_handle_reads_back() {
        let id = |byte| TaskId::from_random(Place::Local, [byte; 16]);
        let waits = [(Goal::Any, Format::Json, Some(4711)), (Goal::All, Format::Markdown, None)];
        let waits = waits.map(|(goal, format, until_ms)| {
            Handle::Wait(Awaited { ids: vec![id(1), id(2)], goal, format, until_ms })
        });
        for handle in [Handle::Run(id(3))].into_iter().chain(waits) {
            assert_eq!(Handle::from_text(&handle.to_text()), Some(handle));
        }
        for other in
            ["", "wait", "wait.any.json..", "wait.some.json..T-local-1", "wait.any.jsonl..x", "T-local-x"]
        {
            assert_eq!(Handle::from_text(other), None, "{other}");
        }
    }
}
