//! Failures for want of a system resource, which the identical call may not meet again.
//!
//! The operating system reports them by number. Everything here works on that number, wherever in the chain of errors
//! it stands. `E2BIG` is the exception: the same call meets it again, and the message names standard input instead.

use std::time::Duration;

use rustix::io::Errno;

use super::{AppError, ErrorCode, Retry};

/// Long enough for another call to end and release what it holds.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The error, if its cause is a shortage or an over-long argument.
pub(super) fn os_limit_error(os_error: Option<i32>, message: &str) -> Option<AppError> {
    let errno = Errno::from_raw_os_error(os_error?);
    if errno == Errno::TOOBIG {
        return Some(AppError::new(ErrorCode::InvalidValue, message).context("errno", "E2BIG").suggest(
            "The system takes at most 128 KiB in one argument, and 2 MiB in all of them and the environment. \
                          Give '-' in place of the text and the text itself on standard input.",
        ));
    }
    let (name, hint) = match errno {
        Errno::MFILE => (
            "EMFILE",
            "This process has as many files open as its limit allows. Try again, or raise the limit (ulimit -n).",
        ),
        Errno::NFILE => {
            ("ENFILE", "The system has as many files open as it allows. Try again, or raise fs.file-max.")
        }
        Errno::NOMEM => {
            ("ENOMEM", "The system has no memory left for this. Try again when other programs have ended.")
        }
        Errno::AGAIN => (
            "EAGAIN",
            "No more processes or threads may be started. Try again when some have ended, or raise the limit (ulimit -u).",
        ),
        _ => return None,
    };
    let error = AppError::new(ErrorCode::IoError, message).context("errno", name).suggest(hint);
    Some(AppError { retry: Retry::Later(Some(RETRY_AFTER)), ..error })
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
                assert_eq!(error.retry, Retry::Later(Some(RETRY_AFTER)), "{description}: {error:?}");
                assert!(error.suggestion.as_ref().unwrap().contains("Try again"), "{error:?}");
                assert!(error.context["errno"].as_str().unwrap().starts_with('E'), "{error:?}");
            }
        }
    }

    #[test]
    fn other_io_errors_use_the_declared_retry_rule() {
        let error = AppError::from(EngineError::Io { doing: "wait", source: os_error(Errno::IO) });
        assert_eq!((error.code, error.retry), (ErrorCode::IoError, Retry::AsDeclared));
    }

    #[test]
    fn argument_too_long_suggests_standard_input() {
        let error =
            AppError::from(EngineError::Io { doing: "start a supervisor", source: os_error(Errno::TOOBIG) });
        assert_eq!((error.code, error.retry), (ErrorCode::InvalidValue, Retry::AsDeclared));
        assert!(error.suggestion.unwrap().contains("standard input"));
    }
}
