//! delegator-config
