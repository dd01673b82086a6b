//! The npm packages: one with a shim, and one with the program for each platform.
//!
//! The platform packages are optional dependencies of the other; npm installs the one whose `os`, `cpu` and `libc` fit. No
//! package has a script that runs on installation.

use serde_json::{Map, Value, json};

use super::product::{DESCRIPTION, KEYWORDS, NAME, PLATFORMS, Platform, Product, REGISTRY_NAME};
use super::tree::Tree;

/// The root of every npm package.
pub(crate) const ROOT: &str = "package";
const SHIM: &str = include_str!("shim.js");

/// What `npm pack` would call the file of a package.
pub(crate) fn file_name(package: &str, version: &str) -> String {
    format!("{}-{version}.tgz", package.trim_start_matches('@').replace('/', "-"))
}

pub(crate) fn main_package(product: &Product, license: &[u8]) -> Tree {
    let mut package = manifest(product, NAME, DESCRIPTION);
    package["mcpName"] = json!(REGISTRY_NAME);
    package["keywords"] = json!(KEYWORDS);
    package["homepage"] = json!(product.repository);
    package["bin"] = json!({ NAME: "bin/mcp-delegator.js" });
    package["engines"] = json!({ "node": ">=18" });
    let packages = PLATFORMS.iter().map(|platform| (platform.npm_package(), json!(product.version)));
    package["optionalDependencies"] = Value::Object(packages.collect::<Map<_, _>>());
    let mut tree = packed(&package, license);
    tree.add_program("bin/mcp-delegator.js", SHIM);
    tree.add("README.md", product.readme());
    tree
}

pub(crate) fn platform_package(product: &Product, platform: &Platform, archive: &PlatformFiles) -> Tree {
    let name = platform.npm_package();
    let about = format!("The program of the package {NAME} for {}", platform.name);
    let mut package = manifest(product, &name, &about);
    package["os"] = json!(["linux"]);
    package["cpu"] = json!([platform.npm_cpu]);
    package["libc"] = json!(["glibc"]);
    // Package managers that keep packages in zip files unpack this one.
    package["preferUnplugged"] = json!(true);
    let mut tree = packed(&package, &archive.license);
    tree.add_program("bin/mcp-delegator", archive.program.as_slice());
    tree.add("THIRD-PARTY-NOTICES.txt", archive.notices.as_str());
    tree.add(
        "README.md",
        format!("# {name}\n\n{about}. Install that package instead: `npm install -g {NAME}`.\n"),
    );
    tree
}

/// What every package of a platform contains.
#[derive(Debug)]
pub(crate) struct PlatformFiles {
    pub(crate) program: Vec<u8>,
    pub(crate) license: Vec<u8>,
    pub(crate) notices: String,
}

fn manifest(product: &Product, name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "version": product.version,
        "description": description,
        "license": product.license,
        "repository": { "type": "git", "url": format!("git+{}.git", product.repository) },
    })
}

fn packed(package: &Value, license: &[u8]) -> Tree {
    let mut tree = Tree::default();
    tree.add("package.json", format!("{package:#}\n"));
    tree.add("LICENSE", license);
    tree
}
