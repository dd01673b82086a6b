//! The Python wheel: the program as a script that pip and uv put on PATH, and metadata. It contains no Python.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::npm::PlatformFiles;
use super::product::{DESCRIPTION, GLIBC, KEYWORDS, NAME, Platform, Product};
use super::tree::Tree;

/// Names in file names have underscores.
fn stem(product: &Product) -> String {
    format!("{}-{}", NAME.replace('-', "_"), product.version)
}

fn tag(platform: &Platform) -> String {
    format!("py3-none-manylinux_{}_{}_{}", GLIBC.0, GLIBC.1, platform.machine)
}

pub(crate) fn file_name(product: &Product, platform: &Platform) -> String {
    format!("{}-{}.whl", stem(product), tag(platform))
}

pub(crate) fn wheel(product: &Product, platform: &Platform, files: &PlatformFiles) -> Tree {
    let stem = stem(product);
    let info = format!("{stem}.dist-info");
    let mut tree = Tree::default();
    tree.add_program(format!("{stem}.data/scripts/{NAME}"), files.program.as_slice());
    tree.add(format!("{info}/METADATA"), metadata(product));
    let wheel = format!(
        "Wheel-Version: 1.0\nGenerator: {NAME} xtask\nRoot-Is-Purelib: false\nTag: {}\n",
        tag(platform)
    );
    tree.add(format!("{info}/WHEEL"), wheel);
    tree.add(format!("{info}/licenses/LICENSE"), files.license.as_slice());
    tree.add(format!("{info}/licenses/THIRD-PARTY-NOTICES.txt"), files.notices.as_str());
    let mut record = String::new();
    for (path, file) in &tree.files {
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(&file.bytes));
        let _ = writeln!(record, "{path},sha256={hash},{}", file.bytes.len());
    }
    // It lists itself without a checksum.
    let _ = writeln!(record, "{info}/RECORD,,");
    tree.add(format!("{info}/RECORD"), record);
    tree
}

fn metadata(product: &Product) -> String {
    format!(
        "Metadata-Version: 2.4\nName: {NAME}\nVersion: {}\nSummary: {DESCRIPTION}\nKeywords: {}\nLicense-Expression: {}\n\
         License-File: LICENSE\nLicense-File: THIRD-PARTY-NOTICES.txt\nProject-URL: Repository, {}\n\
         Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n{}",
        product.version,
        KEYWORDS.join(","),
        product.license,
        product.repository,
        product.readme()
    )
}
