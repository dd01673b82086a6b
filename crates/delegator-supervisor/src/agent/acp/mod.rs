//! Agents of the Agent Client Protocol: everything that is specific to them.
//!
//! The protocol itself is `conversation::acp` and, for what the agents print, `delegator-transcript`. Here is
//! what differs between agents: one table each (`profiles`), and what follows from it. An agent without a
//! table is any agent of the user's configuration.

mod launch;
mod profile;
mod profiles;

pub(super) use launch::{conversation, finish, set_variables, validate};
pub(super) use profile::check_sign_in;
pub(super) use profiles::acp_profile;
