//! What must be written down is tried again when others hold the write lock.
//!
//! A registry gives up waiting for the lock after some seconds, which is right for a call somebody waits for. A
//! supervisor that gave up would take its task's end with it: hundreds of tasks that end in one moment queue up for longer.

use delegator_registry::RegistryError;

use crate::error::EngineError;

/// Each is some seconds of waiting; together they are minutes.
const TRIES: u32 = 120;

/// Tries again for as long as the only trouble is that others write.
pub(crate) fn insist<T>(mut act: impl FnMut() -> Result<T, EngineError>) -> Result<T, EngineError> {
    for _ in 1..TRIES {
        match act() {
            Err(EngineError::Registry(RegistryError::Busy { .. })) => {}
            other => return other,
        }
    }
    act()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy() -> EngineError {
        RegistryError::Busy { file: "registry.db".into() }.into()
    }

    #[test]
    fn a_busy_registry_is_asked_again() {
        let mut tries = 0;
        let told = insist(|| {
            tries += 1;
            if tries < 4 { Err(busy()) } else { Ok(tries) }
        });
        assert_eq!(told.unwrap(), 4);
    }

    #[test]
    fn it_ends_at_last_and_other_errors_are_told_at_once() {
        let mut tries = 0;
        let told: Result<(), _> = insist(|| {
            tries += 1;
            Err(busy())
        });
        assert!(matches!(told, Err(EngineError::Registry(RegistryError::Busy { .. }))));
        assert_eq!(tries, TRIES);
        let told: Result<(), _> = insist(|| {
            tries += 1;
            Err(EngineError::UnknownTask { given: "x".to_owned() })
        });
        assert!(matches!(told, Err(EngineError::UnknownTask { .. })));
        assert_eq!(tries, TRIES + 1);
    }
}
