//! Decides which new files a checkout would write with CRLF.
//!
//! The rules are git's: the attributes `text` and `eol`, then `core.autocrlf` and `core.eol`. Attributes are
//! only read, so no filter runs. Errors mean LF, the content of the diff.

use std::collections::{BTreeMap, BTreeSet};

use crate::records::{RepoPath, join_records};
use crate::run::Call;
use crate::scratch::Scratch;

/// Those of the paths that have CRLF in the work tree and LF in the repository.
pub(crate) fn checked_out_with_crlf(scratch: &Scratch, paths: &[&RepoPath]) -> BTreeSet<RepoPath> {
    if paths.is_empty() {
        return BTreeSet::new();
    }
    let (git, repository) = (&scratch.git, &scratch.repository);
    let setting = |key: &str| {
        let value = scratch.config.get(key).unwrap_or_default();
        value.to_string_lossy().to_lowercase()
    };
    let (autocrlf, eol) = (setting("core.autocrlf"), setting("core.eol"));
    let input = join_records(paths.iter().copied());
    let call = repository.call(["check-attr", "-z", "--stdin", "text", "eol"]);
    let listed = git.run(&repository.top_level, Call { input: &input, ..call }).unwrap_or_default();
    // Path NUL attribute NUL value NUL.
    let fields: Vec<&[u8]> = listed.split(|byte| *byte == 0).collect();
    let mut attributes: BTreeMap<(&[u8], &[u8]), &[u8]> = BTreeMap::new();
    for field in fields.chunks_exact(3) {
        attributes.insert((field[0], field[1]), field[2]);
    }
    let attribute = |path: &RepoPath, name: &'static [u8]| {
        let value = attributes.get(&(path.as_slice(), name)).copied().unwrap_or(b"unspecified");
        String::from_utf8_lossy(value).into_owned()
    };
    let has_crlf =
        |path: &&&RepoPath| is_crlf(&attribute(path, b"text"), &attribute(path, b"eol"), &autocrlf, &eol);
    paths.iter().filter(has_crlf).map(|path| (*path).clone()).collect()
}

fn is_crlf(text: &str, eol_attribute: &str, autocrlf: &str, eol: &str) -> bool {
    match (text, eol_attribute, autocrlf) {
        ("unset", ..) | (_, "lf", _) => false,
        (_, "crlf", _) | (_, _, "true" | "yes" | "on" | "1") => true,
        (_, _, "input") | ("unspecified", ..) => false,
        _ => eol == "crlf",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_come_before_settings() {
        for (text, eol_attribute, autocrlf, eol, expected) in [
            ("unspecified", "unspecified", "", "", false),
            ("unspecified", "unspecified", "true", "", true),
            ("unset", "unspecified", "true", "", false),
            ("set", "lf", "true", "", false),
            ("unspecified", "crlf", "", "", true),
            ("auto", "unspecified", "", "crlf", true),
            ("auto", "unspecified", "input", "crlf", false),
            ("unspecified", "unspecified", "", "crlf", false),
        ] {
            assert_eq!(
                is_crlf(text, eol_attribute, autocrlf, eol),
                expected,
                "{text} {eol_attribute} {autocrlf} {eol}"
            );
        }
    }
}
