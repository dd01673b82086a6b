//! Measures directories.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The size that `stat` counts blocks in.
const BLOCK_BYTES: u64 = 512;

/// The disk space of everything below a directory. What cannot be read does not count.
pub(crate) fn disk_usage(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
        .map(|(path, found)| {
            let own = found.blocks() * BLOCK_BYTES;
            if found.is_dir() { own + disk_usage(&path) } else { own }
        })
        .sum()
}
