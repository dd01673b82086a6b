//! Name and version of this program.

pub const PROGRAM: &str = "mcp-delegator";

pub const PRODUCT_VERSION: &str = env!("CARGO_PKG_VERSION");
