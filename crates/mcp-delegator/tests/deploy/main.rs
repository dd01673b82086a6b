//! The files in `deploy/`: linters accept them, they agree with the program, and the steps of the image run.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod image;
mod image_root;
mod linters;
