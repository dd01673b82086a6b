//! delegator-testkit
