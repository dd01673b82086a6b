//! The invariants of messages: confirmed ones are not lost, none is delivered twice or out of order, and the
//! end of a task settles all of its messages.

use delegator_domain::message::{MessageNumber, MessageState};
use delegator_registry::{Registry, Task};

use super::invariants::{CheckResult, PastEvents, ensure};
use crate::simulation::{SimulatorState, short};

pub(super) fn check_messages(
    registry: &Registry,
    task: &Task,
    machine: &SimulatorState,
    past: PastEvents,
) -> CheckResult {
    let name = short(&task.id);
    let of_task = |list: &[(_, MessageNumber)]| -> Vec<MessageNumber> {
        list.iter().filter(|(id, _)| *id == task.id).map(|(_, number)| *number).collect()
    };
    let sent = of_task(&machine.sent[past.sent..]);
    let delivered = of_task(&machine.delivered[past.delivered..]);
    let messages = registry.last_messages(&task.id, u32::MAX).map_err(|error| error.to_string())?;
    for message in &messages {
        let times = delivered.iter().filter(|number| **number == message.number).count();
        let allowed = match message.state {
            MessageState::Queued | MessageState::Failed => 0..=0,
            MessageState::Delivered | MessageState::Unknown => 0..=1,
            MessageState::Accepted => 1..=1,
        };
        let state = message.state.name();
        ensure(allowed.contains(&times), || {
            format!("message {} of {name} is {state} and was delivered {times} times", message.number)
        })?;
        let is_open = matches!(message.state, MessageState::Queued | MessageState::Delivered);
        ensure(!(is_open && task.state.is_terminal()), || {
            format!("{name} ended, and message {} is {state}", message.number)
        })?;
    }
    for number in sent {
        ensure(messages.iter().any(|message| message.number == number), || {
            format!("message {number} of {name} was confirmed but is lost")
        })?;
    }
    ensure(delivered.is_sorted(), || format!("the messages of {name} were delivered as {delivered:?}"))
}
