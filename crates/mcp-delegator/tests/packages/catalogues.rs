//! What catalogues, clients and other installers read: it follows the published schemas and agrees with the program.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use delegator_testkit::generated::workspace;
use delegator_testkit::program::{World, read_text};
use serde_json::{Value, json};
use xtask::dist::{Output, SERVER_ARGS};

use crate::{PROGRAM, SECONDS, STORED, VERSION, archive_name, packages, succeed, tool};

/// Prints the folder of a Python package.
const FOLDER_OF: &str = "import importlib, pathlib, sys; print(pathlib.Path(importlib.import_module(sys.argv[1]).__file__).parent)";
const CHECK_SBOM: &str = "import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
sys.exit(str(problem) if problem else 0)";

fn python() -> Command {
    Command::new(tool("schemas-1/python/bin/python", "install-schemas"))
}

fn json_of(name: &str) -> Value {
    serde_json::from_str(&read_text(&packages().join(name))).unwrap()
}

#[test]
fn server_json_follows_the_published_schema_and_names_the_packages() {
    let folder = succeed(python().args(["-c", FOLDER_OF, "skillsaw"])).stdout;
    let schema = PathBuf::from(folder.trim()).join("schemas/mcp_registry/v2025_12_11/server.schema.json");
    let check = tool("schemas-1/python/bin/check-jsonschema", "install-schemas");
    succeed(Command::new(check).arg("--schemafile").arg(schema).arg(packages().join("server.json")));
    let server = json_of("server.json");
    assert_eq!(server["version"], VERSION);
    let kinds: Vec<&Value> =
        server["packages"].as_array().unwrap().iter().map(|package| &package["registryType"]).collect();
    assert_eq!(kinds, ["npm", "pypi", "mcpb"]);
    let bundle = &server["packages"][2];
    let name = format!("{}.mcpb", archive_name());
    assert!(bundle["identifier"].as_str().unwrap().ends_with(&format!("/v{VERSION}/{name}")), "{bundle}");
    let sums = read_text(&packages().join("SHA256SUMS"));
    assert!(sums.contains(&format!("{}  {name}", bundle["fileSha256"].as_str().unwrap())));
}

#[test]
fn the_bundle_follows_its_published_schema_and_contains_the_server() {
    let world = World::new(PROGRAM);
    let bundle = packages().join(format!("{}.mcpb", archive_name()));
    succeed(python().args(["-m", "zipfile", "-e"]).arg(bundle).arg(world.project()));
    let validator = tool(
        "schemas-1/node_modules/@anthropic-ai/mcpb/schemas/mcpb-manifest-v0.3.schema.json",
        "install-schemas",
    );
    let check = tool("schemas-1/python/bin/check-jsonschema", "install-schemas");
    let manifest = world.project().join("manifest.json");
    succeed(Command::new(check).arg("--schemafile").arg(validator).arg(&manifest));
    let manifest: Value = serde_json::from_str(&read_text(&manifest)).unwrap();
    assert_eq!((&manifest["version"], &manifest["server"]["type"]), (&json!(VERSION), &json!("binary")));
    assert!(world.project().join(manifest["server"]["entry_point"].as_str().unwrap()).is_file());
}

#[test]
fn the_bill_of_materials_follows_cyclonedx_and_lists_linked_packages() {
    let name = format!("mcp-delegator-{VERSION}.cdx.json");
    succeed(python().args(["-c", CHECK_SBOM]).arg(packages().join(&name)));
    let sbom = json_of(&name);
    assert_eq!(sbom["metadata"]["component"]["version"], VERSION);
    let components = sbom["components"].as_array().unwrap();
    let named = |name: &str| components.iter().find(|component| component["name"] == name);
    assert_eq!(named("rusqlite").unwrap()["hashes"][0]["alg"], "SHA-256");
    assert!(named("delegator-engine").is_some());
    assert!(named("delegator-testkit").is_none(), "a development crate is not in the program");
}

/// Clients that install from a catalogue start the server as `setup` registers it.
#[test]
fn catalogues_start_the_server_that_setup_registers() {
    let printed = World::new(PROGRAM).run(["setup", "cursor", "--print", "--format", "json"]).json();
    let entry: Value = serde_json::from_str(printed["data"]["entry"].as_str().unwrap()).unwrap();
    let args = &entry["mcpServers"]["mcp-delegator"]["args"];
    assert_eq!(*args, json!(SERVER_ARGS));
    let named = json_of("server.json")["packages"][0]["packageArguments"].clone();
    let values: Vec<&Value> = named.as_array().unwrap().iter().map(|argument| &argument["value"]).collect();
    assert_eq!(json!(values), *args);
}

/// The templates of `cargo binstall` and the formula name the archive that was packed.
#[test]
fn other_installers_name_the_archive() {
    let manifest = read_text(&workspace().join("crates/mcp-delegator/Cargo.toml"));
    let value = |key: &str| {
        let line = manifest.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")));
        let filled =
            [("name", "mcp-delegator"), ("version", VERSION), ("target-arch", std::env::consts::ARCH)]
                .into_iter()
                .chain([("repo", "REPO"), ("bin", "mcp-delegator"), ("binary-ext", "")])
                .fold(line.unwrap().to_owned(), |text, (key, value)| {
                    text.replace(&format!("{{ {key} }}"), value)
                });
        filled.trim_matches('"').to_owned()
    };
    let download = format!("/releases/download/v{VERSION}/{}.tar.gz", archive_name());
    assert_eq!(value("pkg-url"), format!("REPO{download}"));
    assert_eq!(value("bin-dir"), format!("{}/bin/mcp-delegator", archive_name()));
    let formula = read_text(&packages().join("mcp-delegator.rb"));
    let sums = read_text(&packages().join("SHA256SUMS"));
    let line = sums.lines().find(|line| line.ends_with(&format!("{}.tar.gz", archive_name()))).unwrap();
    assert!(formula.contains(&download) && formula.contains(line.split(' ').next().unwrap()), "{formula}");
}

#[test]
fn a_release_without_the_packages_of_another_platform_is_incomplete() {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(packages()).unwrap() {
        let path = entry.unwrap().path();
        std::os::unix::fs::symlink(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    let output = Output::new(&workspace(), folder.path(), SECONDS, STORED).unwrap();
    let missing = output.missing_files();
    assert_eq!(missing.len(), 4, "{missing:?}");
    let other = if cfg!(target_arch = "aarch64") { "x86_64-linux" } else { "aarch64-linux" };
    assert!(missing.contains(&format!("mcp-delegator-{VERSION}-{other}.tar.gz")), "{missing:?}");
}
