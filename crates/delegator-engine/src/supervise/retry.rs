//! What must be written down is tried again when others hold the write lock.
//!
//! A registry gives up waiting for the lock after some seconds, which is right for a call somebody waits for. A
//! supervisor that gave up would take its task's end with it: hundreds of tasks that end in one moment queue up for longer.

use delegator_registry::RegistryError;

use crate::error::EngineError;

/// Each is some seconds of waiting; together they are minutes.
const MAX_ATTEMPTS: u32 = 120;

/// Tries again for as long as the only trouble is that others write.
pub(crate) fn retry_while_busy<T>(mut act: impl FnMut() -> Result<T, EngineError>) -> Result<T, EngineError> {
    for _ in 1..MAX_ATTEMPTS {
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
    fn retries_while_the_registry_is_busy() {
        let mut attempts = 0;
        let result = retry_while_busy(|| {
            attempts += 1;
            if attempts < 4 { Err(busy()) } else { Ok(attempts) }
        });
        assert_eq!(result.unwrap(), 4);
    }

    #[test]
    fn gives_up_at_last_and_returns_other_errors_at_once() {
        let mut attempts = 0;
        let result: Result<(), _> = retry_while_busy(|| {
            attempts += 1;
            Err(busy())
        });
        assert!(matches!(result, Err(EngineError::Registry(RegistryError::Busy { .. }))));
        assert_eq!(attempts, MAX_ATTEMPTS);
        let result: Result<(), _> = retry_while_busy(|| {
            attempts += 1;
            Err(EngineError::UnknownTask { given: "x".to_owned() })
        });
        assert!(matches!(result, Err(EngineError::UnknownTask { .. })));
        assert_eq!(attempts, MAX_ATTEMPTS + 1);
    }
}
