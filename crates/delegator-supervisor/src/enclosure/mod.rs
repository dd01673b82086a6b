//! Encloses an agent that has no sandbox of its own: it and everything it starts can write only to listed
//! paths.
//!
//! The supervisor does not enclose itself. It starts this program again in the internal mode [`ENCLOSE`] (see
//! [`enter`]), which opens the writable paths, applies the rules to itself and then executes the agent in the
//! same process. The rules apply to all descendants and cannot be removed.
//!
//! ```text
//! Enclosure ─ wrap ─▶ mcp-delegator enclose MECHANISM PATH… -- PROGRAM ARG…
//!                       ├─ landlock: rules, no new privileges, exec PROGRAM
//!                       └─ bubblewrap: exec bwrap … -- PROGRAM
//! ```
//!
//! Reading is not restricted, except that bubblewrap hides our own files, and neither is the network.
//! SECURITY.md lists what each mechanism cannot prevent; change both together.

mod arguments;
mod bubblewrap;
mod capabilities;
mod enter;
mod landlock_rules;
mod mechanism;
mod path_rules;

pub use arguments::{ENCLOSE, Enclosure};
pub use enter::enter;
pub use mechanism::{Mechanism, Unavailable, find_mechanism};
pub use path_rules::{PathRules, WritablePath};
