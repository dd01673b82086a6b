//! The arguments of the internal mode, which the supervisor writes and the enclosed process reads; and how
//! the supervisor learns that an enclosed agent never started.
//!
//! The internal mode has only its exit code and standard error to report that. An agent that imitates them
//! only misnames its own failure, and only if it prints nothing on standard output.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use delegator_domain::task::{ExitStatus, FailureKind, TaskEnd};

use super::mechanism::Mechanism;
use super::path_rules::{PathRules, WritablePath};

/// The argument that makes this program enclose itself and then execute an agent.
pub const ENCLOSE: &str = "enclose";

const PROTECTED: &str = "protected:";
const HIDDEN: &str = "hidden:";
/// Separates the writable paths from the program. No path is equal to it: they begin with two numbers.
const END_OF_PATHS: &str = "--";
const NOT_ENCLOSED: &str = "The agent could not be enclosed: ";
const NOT_STARTED: &str = "The enclosed agent could not be started: ";
/// `bwrap` could not execute the program.
const NOT_EXECUTED: &str = "execvp ";

/// How an agent is enclosed, and where it may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enclosure {
    pub mechanism: Mechanism,
    /// This program.
    pub launcher: PathBuf,
    pub paths: PathRules,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct EnclosedProgram {
    pub(super) mechanism: Mechanism,
    pub(super) paths: PathRules,
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
}

impl Enclosure {
    pub(crate) fn wrap(&self, program: &Path, args: &[OsString]) -> Vec<OsString> {
        let mut encoded: Vec<OsString> = vec![ENCLOSE.into()];
        encoded.push(match &self.mechanism {
            Mechanism::Landlock => "landlock".into(),
            Mechanism::Bubblewrap { program } => joined("bubblewrap:", program),
        });
        for WritablePath { path, device, inode } in &self.paths.writable {
            encoded.push(joined(&format!("{device}:{inode}:"), path));
        }
        encoded.extend(self.paths.protected.iter().map(|path| joined(PROTECTED, path)));
        encoded.extend(self.paths.hidden.iter().map(|path| joined(HIDDEN, path)));
        encoded.push(END_OF_PATHS.into());
        encoded.push(program.into());
        encoded.extend(args.iter().cloned());
        encoded
    }
}

fn joined(prefix: &str, path: &Path) -> OsString {
    OsString::from_vec([prefix.as_bytes(), path.as_os_str().as_bytes()].concat())
}

/// Parses the arguments after [`ENCLOSE`].
pub(super) fn decode(args: &[OsString]) -> Option<EnclosedProgram> {
    let (mechanism, args) = args.split_first()?;
    let end = args.iter().position(|arg| arg == END_OF_PATHS)?;
    let marked = |arg: &OsString, mark: &str| -> Option<PathBuf> {
        Some(OsStr::from_bytes(arg.as_bytes().strip_prefix(mark.as_bytes())?).into())
    };
    let paths = |mark| args[..end].iter().filter_map(move |arg| marked(arg, mark)).collect::<Vec<_>>();
    let (protected, hidden) = (paths(PROTECTED), paths(HIDDEN));
    let is_marked = |arg: &OsString| [PROTECTED, HIDDEN].iter().any(|mark| marked(arg, mark).is_some());
    let writable = args[..end].iter().filter(|arg| !is_marked(arg)).map(|arg| writable_path(arg));
    let writable = writable.collect::<Option<Vec<_>>>()?;
    let (program, args) = args[end + 1..].split_first()?;
    let mechanism = match mechanism.as_bytes().strip_prefix(b"bubblewrap:") {
        Some(program) => Mechanism::Bubblewrap { program: OsStr::from_bytes(program).into() },
        None if mechanism == "landlock" => Mechanism::Landlock,
        None => return None,
    };
    let paths = PathRules { writable, protected, hidden };
    Some(EnclosedProgram { mechanism, paths, program: program.into(), args: args.to_vec() })
}

fn writable_path(arg: &OsStr) -> Option<WritablePath> {
    let mut parts = arg.as_bytes().splitn(3, |byte| *byte == b':');
    let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse().ok();
    let (device, inode) = (number()?, number()?);
    Some(WritablePath { device, inode, path: OsStr::from_bytes(parts.next()?).into() })
}

/// Why the internal mode did not become the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StartFailure {
    NotEnclosed(String),
    NotStarted(String),
}

impl StartFailure {
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            StartFailure::NotEnclosed(_) => 125,
            StartFailure::NotStarted(_) => 126,
        }
    }

    fn parse(code: i32, line: &str, mechanism: &Mechanism) -> Option<StartFailure> {
        let failure = if let Some(problem) = line.strip_prefix(NOT_ENCLOSED) {
            StartFailure::NotEnclosed(problem.to_owned())
        } else if let Some(problem) = line.strip_prefix(NOT_STARTED) {
            StartFailure::NotStarted(problem.to_owned())
        } else {
            let problem = line.strip_prefix("bwrap: ").filter(|_| code == 1)?;
            return match mechanism {
                Mechanism::Landlock => None,
                Mechanism::Bubblewrap { .. } if problem.starts_with(NOT_EXECUTED) => {
                    Some(StartFailure::NotStarted(problem.to_owned()))
                }
                Mechanism::Bubblewrap { .. } => Some(StartFailure::NotEnclosed(line.to_owned())),
            };
        };
        (code == i32::from(failure.exit_code())).then_some(failure)
    }
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartFailure::NotEnclosed(problem) => write!(f, "{NOT_ENCLOSED}{problem}"),
            StartFailure::NotStarted(problem) => write!(f, "{NOT_STARTED}{problem}"),
        }
    }
}

impl Enclosure {
    /// The end of a run that never started its agent, by the exit and the end of standard error. `None` if
    /// the agent started.
    pub(crate) fn start_failure(
        &self,
        exit: Option<ExitStatus>,
        printed: u64,
        stderr: &str,
    ) -> Option<TaskEnd> {
        let (Some(ExitStatus::Code(code)), 0) = (exit, printed) else { return None };
        let failure = StartFailure::parse(code, stderr.lines().next_back()?, &self.mechanism)?;
        let (kind, message) = match failure {
            StartFailure::NotEnclosed(problem) => {
                (FailureKind::Sandbox, format!("could not enclose the agent: {problem}"))
            }
            StartFailure::NotStarted(problem) => {
                (FailureKind::SpawnFailed, format!("could not start the agent: {problem}"))
            }
        };
        Some(TaskEnd::failed(kind, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_as_they_were_written() {
        let path =
            |text: &[u8]| WritablePath { path: OsStr::from_bytes(text).into(), device: 2, inode: u64::MAX };
        let writable = vec![path(b"/a:b c"), path(b"/--"), path(b"/\xff\n")];
        let hidden: Vec<PathBuf> = vec!["/a:b".into(), OsStr::from_bytes(b"/\xff").into()];
        let args: Vec<OsString> = ["--", "-x", "", "a b"].map(OsString::from).to_vec();
        for mechanism in [Mechanism::Landlock, Mechanism::Bubblewrap { program: "/usr/bin/bw:rap".into() }] {
            let protected = vec![PathBuf::from("/a b/.git/config"), "/--".into()];
            let paths = PathRules { writable: writable.clone(), protected, hidden: hidden.clone() };
            let enclosure =
                Enclosure { mechanism: mechanism.clone(), launcher: "/m".into(), paths: paths.clone() };
            let encoded = enclosure.wrap(Path::new("/bin/agent"), &args);
            assert_eq!(encoded[0], ENCLOSE);
            let expected =
                EnclosedProgram { mechanism, paths, program: "/bin/agent".into(), args: args.clone() };
            assert_eq!(decode(&encoded[1..]), Some(expected));
        }
        for invalid in
            [&["landlock"][..], &["landlock", "--"], &["none", "--", "x"], &["landlock", "1:/a", "--", "x"]]
        {
            let invalid: Vec<OsString> = invalid.iter().map(OsString::from).collect();
            assert_eq!(decode(&invalid), None, "{invalid:?}");
        }
    }

    fn kind(mechanism: Mechanism, code: i32, printed: u64, stderr: &str) -> Option<FailureKind> {
        let enclosure = Enclosure { mechanism, launcher: "/m".into(), paths: PathRules::default() };
        let end = enclosure.start_failure(Some(ExitStatus::Code(code)), printed, stderr)?;
        match end {
            TaskEnd::Failed { kind, .. } => Some(kind),
            _ => None,
        }
    }

    #[test]
    fn a_failed_start_differs_from_a_failed_agent() {
        let bubblewrap = || Mechanism::Bubblewrap { program: "/usr/bin/bwrap".into() };
        for failure in [StartFailure::NotEnclosed("x".into()), StartFailure::NotStarted("y".into())] {
            let expected = match failure {
                StartFailure::NotEnclosed(_) => FailureKind::Sandbox,
                StartFailure::NotStarted(_) => FailureKind::SpawnFailed,
            };
            let (code, line) = (i32::from(failure.exit_code()), format!("{failure}\n"));
            for mechanism in [Mechanism::Landlock, bubblewrap()] {
                assert_eq!(kind(mechanism, code, 0, &line), Some(expected));
            }
            assert_eq!(kind(Mechanism::Landlock, 1, 0, &line), None, "another exit code");
            assert_eq!(kind(Mechanism::Landlock, code, 1, &line), None, "the agent printed something");
        }
        let no_namespaces = "bwrap: setting up uid map: Permission denied\n";
        assert_eq!(kind(bubblewrap(), 1, 0, no_namespaces), Some(FailureKind::Sandbox));
        assert_eq!(
            kind(bubblewrap(), 1, 0, "bwrap: execvp /x: No such file\n"),
            Some(FailureKind::SpawnFailed)
        );
        assert_eq!(kind(Mechanism::Landlock, 1, 0, no_namespaces), None);
        assert_eq!(kind(bubblewrap(), 1, 0, "some error\n"), None);
    }
}
