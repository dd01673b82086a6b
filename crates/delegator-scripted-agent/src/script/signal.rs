//! Signals by name.

use rustix::process::Signal;
use serde::Deserialize;

/// The standard signals of Linux, by their short names.
const NAMES: [(&str, Signal); 31] = [
    ("HUP", Signal::HUP),
    ("INT", Signal::INT),
    ("QUIT", Signal::QUIT),
    ("ILL", Signal::ILL),
    ("TRAP", Signal::TRAP),
    ("ABRT", Signal::ABORT),
    ("BUS", Signal::BUS),
    ("FPE", Signal::FPE),
    ("KILL", Signal::KILL),
    ("USR1", Signal::USR1),
    ("SEGV", Signal::SEGV),
    ("USR2", Signal::USR2),
    ("PIPE", Signal::PIPE),
    ("ALRM", Signal::ALARM),
    ("TERM", Signal::TERM),
    ("STKFLT", Signal::STKFLT),
    ("CHLD", Signal::CHILD),
    ("CONT", Signal::CONT),
    ("STOP", Signal::STOP),
    ("TSTP", Signal::TSTP),
    ("TTIN", Signal::TTIN),
    ("TTOU", Signal::TTOU),
    ("URG", Signal::URG),
    ("XCPU", Signal::XCPU),
    ("XFSZ", Signal::XFSZ),
    ("VTALRM", Signal::VTALARM),
    ("PROF", Signal::PROF),
    ("WINCH", Signal::WINCH),
    ("IO", Signal::IO),
    ("PWR", Signal::POWER),
    ("SYS", Signal::SYS),
];

/// A signal, written as `INT` or `SIGINT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct SignalName(Signal);

impl TryFrom<String> for SignalName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let short = text.strip_prefix("SIG").unwrap_or(&text);
        match NAMES.iter().find(|(name, _)| *name == short) {
            Some((_, signal)) => Ok(Self(*signal)),
            None => Err(format!("`{text}` is not the name of a signal")),
        }
    }
}

impl SignalName {
    pub(crate) fn from_number(number: i32) -> Option<Self> {
        NAMES.iter().find(|(_, signal)| signal.as_raw() == number).map(|(_, signal)| Self(*signal))
    }

    pub fn signal(self) -> Signal {
        self.0
    }

    pub fn number(self) -> i32 {
        self.0.as_raw()
    }

    /// The name without `SIG`.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, signal)| *signal == self.0).map_or("?", |(name, _)| name)
    }

    /// Whether its default action ends a process.
    pub fn is_fatal(self) -> bool {
        !matches!(self.name(), "CHLD" | "CONT" | "STOP" | "TSTP" | "TTIN" | "TTOU" | "URG" | "WINCH")
    }
}
