//! Versions of Codex and the features of each.
//!
//! The table was measured with released programs: an unknown feature name after `--disable` is a fatal error,
//! an unknown configuration key is not. A version newer than all measured ones is assumed to support what the
//! newest one does.

use crate::program::{Version, version_text};

pub(super) const OLDEST_MEASURED: Version = (0, 40, 0);
/// A program that does not report its version is treated like this one.
pub(in crate::agent) const NEWEST_MEASURED: Version = (0, 166, 0);

// The first version that has a feature.
pub(super) const EXEC_RESUME: Version = (0, 35, 0);
pub(super) const OUTPUT_SCHEMA: Version = (0, 41, 0);
pub(super) const ADD_DIR: Version = (0, 48, 0);
pub(super) const UNTRUSTED_PROJECTS: Version = (0, 59, 0);
pub(super) const SHELL_SNAPSHOTS: Version = (0, 67, 0);
/// The setting that enables plans; before, plans are always reported.
pub(super) const PLAN_SETTING: Version = (0, 146, 0);
pub(super) const UNBOUNDED_RETRIES: Version = (0, 148, 0);
/// Permission profiles that deny reading a directory; versions before were not measured.
pub(super) const DENIED_READS: Version = (0, 166, 0);

pub(in crate::agent) fn tested_versions() -> String {
    format!("{} to {}", version_text(OLDEST_MEASURED), version_text(NEWEST_MEASURED))
}

/// A warning for a version outside of the measured ones. It is used anyway.
pub(in crate::agent) fn version_warning(version: Version) -> Option<String> {
    let side = match version {
        version if version > NEWEST_MEASURED => "newer",
        version if version < OLDEST_MEASURED => "older",
        _ => return None,
    };
    Some(format!("{side} than the tested versions ({}); it will be used anyway", tested_versions()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_versions_than_the_measured_ones_are_reported() {
        assert_eq!(version_warning((0, 166, 0)), None);
        let newer = version_warning((1, 0, 0)).unwrap();
        assert!(newer.contains("newer than the tested versions (0.40.0 to 0.166.0)"), "{newer}");
        assert!(version_warning((0, 39, 9)).unwrap().contains("older"));
    }
}
