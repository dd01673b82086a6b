//! Chooses the mechanism that encloses agents on this machine.

use std::ffi::OsStr;
use std::path::PathBuf;

use delegator_domain::task::EnclosureChoice;
use serde::{Deserialize, Serialize};

use super::{bubblewrap, landlock_rules};
use crate::program::{UntrustedTrees, locate};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    Landlock,
    Bubblewrap { program: PathBuf },
}

impl Mechanism {
    /// What it is, and what it does not cover here, for `doctor`.
    pub fn describe(&self) -> String {
        match self {
            Mechanism::Landlock if landlock_rules::supports_scopes() => "Landlock".to_owned(),
            Mechanism::Landlock => {
                "Landlock (before Linux 6.12 it does not cover signals and abstract sockets)".to_owned()
            }
            Mechanism::Bubblewrap { program } => format!("bubblewrap ({})", program.display()),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    #[error("Landlock, in Linux 6.2 or newer, is not available")]
    Landlock,
    #[error("bubblewrap is not available: {0}")]
    Bubblewrap(String),
    #[error("neither Landlock, in Linux 6.2 or newer, nor bubblewrap is available: {0}")]
    Both(String),
}

/// The mechanism for agents: Landlock, or else bubblewrap, if it is installed and works. `path` is the
/// submitter's PATH.
pub fn find_mechanism(
    choice: EnclosureChoice,
    path: Option<&OsStr>,
    untrusted: &UntrustedTrees,
) -> Result<Mechanism, Unavailable> {
    match choice {
        EnclosureChoice::Landlock | EnclosureChoice::Auto if landlock_rules::is_supported() => {
            Ok(Mechanism::Landlock)
        }
        EnclosureChoice::Landlock => Err(Unavailable::Landlock),
        EnclosureChoice::Bubblewrap => find_bubblewrap(path, untrusted).map_err(Unavailable::Bubblewrap),
        EnclosureChoice::Auto => find_bubblewrap(path, untrusted).map_err(Unavailable::Both),
    }
}

fn find_bubblewrap(path: Option<&OsStr>, untrusted: &UntrustedTrees) -> Result<Mechanism, String> {
    let program = locate(OsStr::new("bwrap"), path, untrusted).map_err(|error| error.to_string())?;
    match bubblewrap::probe(&program) {
        Ok(()) => Ok(Mechanism::Bubblewrap { program }),
        Err(problem) => Err(format!("{} does not work: {problem}", program.display())),
    }
}
