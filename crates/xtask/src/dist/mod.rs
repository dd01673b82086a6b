//! Release packages: everything is made from one built program and one description of the product.
//!
//! ```text
//! build (zig, old glibc) ─▶ pack: archive, npm platform package, wheel, MCP bundle   once for each platform
//!                           index: npm package, SBOM, server.json, links, formula, SHA256SUMS   from all packed files
//!                           publish: refuses unless the files of all platforms are there
//! ```

mod archive;
pub(crate) mod build;
mod catalogues;
mod dependencies;
mod homebrew;
mod notices;
mod npm;
mod output;
mod product;
pub(crate) mod publish;
pub(crate) mod release_check;
mod sbom;
mod tree;
mod versions;
mod wheel;

pub use output::Output;
pub use product::{PLATFORMS, Platform, Product, SERVER_ARGS};
pub use versions::version_problems;
