//! The arguments of the internal mode: what the supervisor writes and the enclosed process reads.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::mechanism::Mechanism;
use super::path_rules::{PathRules, WritablePath};

/// The argument that makes this program enclose itself and then execute an agent.
pub const ENCLOSE: &str = "enclose";

/// Before a path that must not be changed.
const PROTECTED: &str = "protected:";
/// Before a hidden path.
const HIDDEN: &str = "hidden:";
/// Separates the writable paths from the program. No path is equal to it: they begin with two numbers.
const END_OF_PATHS: &str = "--";

/// How an agent is enclosed, and where it may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enclosure {
    pub mechanism: Mechanism,
    /// This program.
    pub launcher: PathBuf,
    pub paths: PathRules,
}

/// What to execute, and how to enclose it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) mechanism: Mechanism,
    pub(super) paths: PathRules,
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
}

impl Enclosure {
    /// The arguments with which the launcher runs a program enclosed.
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
pub(super) fn decode(args: &[OsString]) -> Option<Request> {
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
    Some(Request { mechanism, paths, program: program.into(), args: args.to_vec() })
}

fn writable_path(arg: &OsStr) -> Option<WritablePath> {
    let mut parts = arg.as_bytes().splitn(3, |byte| *byte == b':');
    let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse().ok();
    let (device, inode) = (number()?, number()?);
    Some(WritablePath { device, inode, path: OsStr::from_bytes(parts.next()?).into() })
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
            let expected = Request { mechanism, paths, program: "/bin/agent".into(), args: args.clone() };
            assert_eq!(decode(&encoded[1..]), Some(expected));
        }
        for invalid in
            [&["landlock"][..], &["landlock", "--"], &["none", "--", "x"], &["landlock", "1:/a", "--", "x"]]
        {
            let invalid: Vec<OsString> = invalid.iter().map(OsString::from).collect();
            assert_eq!(decode(&invalid), None, "{invalid:?}");
        }
    }
}
