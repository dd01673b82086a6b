//! The values that each source sets, before precedence is applied.

use std::collections::BTreeMap;

use crate::origin::Origin;
use crate::value::Value;

/// A checked value and where it was set.
#[derive(Clone, Debug)]
pub(crate) struct SourcedValue {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// All values that one source sets, by key name.
pub(crate) type Layer = BTreeMap<&'static str, SourcedValue>;

/// All sources above the defaults.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers {
    pub(crate) user: Layer,
    pub(crate) project: Layer,
    pub(crate) environment: Layer,
    pub(crate) flags: Layer,
}
