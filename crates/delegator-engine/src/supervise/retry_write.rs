//! Retries a registry write while other processes hold the write lock. The registry gives up after five
//! seconds without progress of others, or after a minute; a supervisor that gave up would lose the end of its
//! task.

use delegator_registry::RegistryError;

use crate::error::{EngineError, Result};

/// Ten minutes, if one process holds the lock all that time.
const MAX_TRIES: u32 = 120;

pub(crate) fn retry_while_busy<T>(mut act: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 1..MAX_TRIES {
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
        let mut tries = 0;
        let result = retry_while_busy(|| {
            tries += 1;
            if tries < 4 { Err(busy()) } else { Ok(tries) }
        });
        assert_eq!(result.unwrap(), 4);
    }

    #[test]
    fn gives_up_at_last_and_returns_other_errors_at_once() {
        let mut tries = 0;
        let result: Result<(), _> = retry_while_busy(|| {
            tries += 1;
            Err(busy())
        });
        assert!(matches!(result, Err(EngineError::Registry(RegistryError::Busy { .. }))));
        assert_eq!(tries, MAX_TRIES);
        let result: Result<(), _> = retry_while_busy(|| {
            tries += 1;
            Err(EngineError::UnknownTask { given: "x".to_owned() })
        });
        assert!(matches!(result, Err(EngineError::UnknownTask { .. })));
        assert_eq!(tries, MAX_TRIES + 1);
    }
}
