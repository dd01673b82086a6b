//! delegator-transcript
