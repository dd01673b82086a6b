//! What can be done with the registry: one verb, one transaction.

pub(crate) mod attempt;
pub(crate) mod cancel;
pub(crate) mod claim;
pub(crate) mod ended;
pub(crate) mod forget;
pub(crate) mod import;
pub(crate) mod leftovers;
pub(crate) mod list;
pub(crate) mod meanwhile;
pub(crate) mod notes;
#[cfg(test)]
mod plans;
pub(crate) mod queries;
pub(crate) mod restore_points;
pub(crate) mod submit;
pub(crate) mod turns;
pub(crate) mod usage;
