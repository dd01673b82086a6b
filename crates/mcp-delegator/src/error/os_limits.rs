//! Errors caused by a shortage of a system resource (files, memory, processes).
//!
//! They are recognised by `errno`, wherever it stands in the chain of errors, and are retryable: the identical call
//! may succeed once another process has released the resource. `E2BIG` is the exception: the same call fails again,
//! so its suggestion is to pass the text on standard input.

use std::time::Duration;

use rustix::io::Errno;

use crate::error::{AppError, ErrorCode};

/// Long enough for another call to end and release its resources.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The error for this `errno`, if it is a resource shortage or an argument that is too long.
pub(super) fn os_limit_error(os_error: Option<i32>, message: &str) -> Option<AppError> {
    let errno = Errno::from_raw_os_error(os_error?);
    if errno == Errno::TOOBIG {
        return Some(AppError::new(ErrorCode::InvalidValue, message).context("errno", "E2BIG").suggest(
            "The system takes at most 128 KiB in one argument, and 2 MiB in all of them and the environment. \
                          Give '-' instead of the text, and the text on standard input.",
        ));
    }
    let (name, hint) = match errno {
        Errno::MFILE => (
            "EMFILE",
            "This process has reached its limit of open files. Try again, or raise the limit (ulimit -n).",
        ),
        Errno::NFILE => {
            ("ENFILE", "The system has reached its limit of open files. Try again, or raise fs.file-max.")
        }
        Errno::NOMEM => ("ENOMEM", "The system is out of memory. Try again when other programs have ended."),
        Errno::AGAIN => (
            "EAGAIN",
            "The limit of processes and threads is reached. Try again when some have ended, or raise the limit (ulimit -u).",
        ),
        _ => return None,
    };
    let error = AppError::new(ErrorCode::ResourceShortage, message).context("errno", name).suggest(hint);
    Some(AppError { retry_after: Some(RETRY_AFTER), ..error })
}

#[cfg(test)]
mod tests {
    use std::io;

    use delegator_engine::EngineError;
    use delegator_registry::RegistryError;

    use super::*;

    fn os_error(errno: Errno) -> io::Error {
        io::Error::from_raw_os_error(errno.raw_os_error())
    }

    #[test]
    fn every_resource_shortage_is_retryable() {
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN] {
            let registry_error =
                RegistryError::File { path: "/s/registry.db".into(), doing: "open", source: os_error(errno) };
            for error in [
                EngineError::Io { doing: "start a thread", source: os_error(errno) },
                EngineError::Registry(registry_error),
                EngineError::WatchFailed {
                    detail: "no more files".to_owned(),
                    os_error: Some(errno.raw_os_error()),
                },
            ] {
                let description = error.to_string();
                let error = AppError::from(error);
                assert_eq!(
                    (error.code, error.retry_after),
                    (ErrorCode::ResourceShortage, Some(RETRY_AFTER)),
                    "{description}: {error:?}"
                );
                assert!(error.suggestion.as_ref().unwrap().text.contains("Try again"), "{error:?}");
                assert!(error.context["errno"].as_str().unwrap().starts_with('E'), "{error:?}");
            }
        }
    }

    #[test]
    fn other_io_errors_use_the_declared_retry_rule() {
        let error = AppError::from(EngineError::Io { doing: "wait", source: os_error(Errno::IO) });
        assert_eq!((error.code, error.retry_after), (ErrorCode::IoError, None));
    }

    #[test]
    fn argument_too_long_suggests_standard_input() {
        let error =
            AppError::from(EngineError::Io { doing: "start a supervisor", source: os_error(Errno::TOOBIG) });
        assert_eq!((error.code, error.retry_after), (ErrorCode::InvalidValue, None));
        assert!(error.suggestion.unwrap().text.contains("standard input"));
    }
}
