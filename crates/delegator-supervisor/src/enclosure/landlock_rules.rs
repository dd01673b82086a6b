//! The Landlock rules of an enclosure.
//!
//! They cover every way to change a file system that the kernel lets them cover. Truncation is one of them
//! only from ABI 3 (Linux 6.2) on, so older kernels are refused. On newer ones the rules also cover ioctls of
//! devices (ABI 5, Linux 6.10), signals and abstract sockets to processes outside (ABI 6, Linux 6.12).
//! Landlock itself forbids mounting and tracing processes outside.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use ::landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, make_bitflags,
};

use super::path_rules::open_path;

/// What programs usually write to. Programs with a terminal of their own need `/dev/ptmx` and `/dev/pts`.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

pub(super) fn is_supported() -> bool {
    required_rules().and_then(Ruleset::create).is_ok()
}

/// Whether the kernel also keeps an enclosed process from sending signals to processes outside, and from
/// connecting to their abstract sockets.
pub(super) fn supports_scopes() -> bool {
    required_rules().and_then(|rules| rules.scope(Scope::from_all(ABI::V6))).and_then(Ruleset::create).is_ok()
}

/// Restricts this process, which must have one thread, and everything that it executes.
pub(super) fn restrict(writable: &[OwnedFd]) -> Result<(), RestrictError> {
    let mut rules = required_rules()?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::IoctlDev)?
        .scope(Scope::from_all(ABI::V6))?
        .create()?;
    for path in writable {
        rules = rules.add_rule(PathBeneath::new(path, writing_rights(path)?))?;
    }
    for device in DEVICES {
        // A container may lack some of them.
        if let Ok(device) = open_path(Path::new(device)) {
            let rights = make_bitflags!(AccessFs::{WriteFile | Truncate | IoctlDev});
            rules = rules.add_rule(PathBeneath::new(device, rights))?;
        }
    }
    match rules.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err(RestrictError::NotEnforced),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum RestrictError {
    #[error(transparent)]
    Rules(#[from] RulesetError),
    #[error("the kernel does not enforce the Landlock rules")]
    NotEnforced,
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn required_rules() -> Result<Ruleset, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(ABI::V3))
}

/// All rights but one: root could create a device file in a writable directory and write to the device.
fn writing_rights(path: &OwnedFd) -> io::Result<BitFlags<AccessFs>> {
    let found = rustix::fs::fstat(path)?;
    Ok(if rustix::fs::FileType::from_raw_mode(found.st_mode).is_dir() {
        AccessFs::from_write(ABI::V3) & !make_bitflags!(AccessFs::{MakeChar | MakeBlock})
    } else {
        make_bitflags!(AccessFs::{WriteFile | Truncate})
    })
}
