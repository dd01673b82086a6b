//! The capabilities that an enclosed process may retain. Only root has any.
//!
//! Root could reach around every rule about files: load a kernel module, write to a disk, mount a file
//! system. It retains what programs need to work with files and processes of other users.

use rustix::io;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

pub(super) const RETAINED: [(CapabilitySet, &str); 9] = [
    (CapabilitySet::CHOWN, "CAP_CHOWN"),
    (CapabilitySet::DAC_OVERRIDE, "CAP_DAC_OVERRIDE"),
    (CapabilitySet::FOWNER, "CAP_FOWNER"),
    (CapabilitySet::FSETID, "CAP_FSETID"),
    (CapabilitySet::KILL, "CAP_KILL"),
    (CapabilitySet::SETGID, "CAP_SETGID"),
    (CapabilitySet::SETUID, "CAP_SETUID"),
    (CapabilitySet::NET_BIND_SERVICE, "CAP_NET_BIND_SERVICE"),
    (CapabilitySet::NET_RAW, "CAP_NET_RAW"),
];

/// Drops all others. Without new privileges no program that this process executes gets them back.
pub(super) fn drop_others() -> io::Result<()> {
    let retained =
        RETAINED.iter().fold(CapabilitySet::empty(), |retained, (capability, _)| retained | *capability);
    let CapabilitySets { effective, permitted, inheritable } = capabilities(None)?;
    let sets = CapabilitySets {
        effective: effective & retained,
        permitted: permitted & retained,
        inheritable: inheritable & retained,
    };
    set_capabilities(None, sets)
}
