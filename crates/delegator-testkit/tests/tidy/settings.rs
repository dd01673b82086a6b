//! Every setting is read by code that acts on it: otherwise setting it would have no effect.

use delegator_testkit::generated::workspace;

use crate::rust_files;

/// The names under which code outside the configuration crate holds a `Settings` value.
const RECEIVERS: [&str; 3] = ["settings", "configured", "config"];

/// The public fields of a struct in `settings.rs`. A test of that crate compares them with the key table.
fn fields(structure: &str) -> Vec<String> {
    let path = workspace().join("crates/delegator-config/src/settings.rs");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, body) = text.split_once(&format!("pub struct {structure} {{")).unwrap();
    let body = body.split_once("\n}").unwrap().0;
    let field =
        |line: &str| line.trim().strip_prefix("pub ")?.split_once(':').map(|(name, _)| name.to_owned());
    body.lines().filter_map(field).collect()
}

/// Product code without white space, so that a wrapped expression is found.
fn product_code() -> Vec<String> {
    let is_product =
        |path: &str| path.contains("/src/") && !path.contains("/tests") && !path.contains("testkit");
    let files = rust_files().into_iter().filter(|(path, _)| is_product(&path.to_string_lossy()));
    files.map(|(_, text)| text.split_whitespace().collect()).collect()
}

fn is_read(code: &str, expression: &str) -> bool {
    let ends =
        |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_' || next == '(');
    code.match_indices(expression).any(|(at, _)| ends(&code[at + expression.len()..]))
}

#[test]
fn every_built_setting_is_read() {
    let code = product_code();
    for (structure, receivers) in [("Settings", &RECEIVERS[..]), ("AgentSettings", &["agent"])] {
        let fields = fields(structure);
        assert!(fields.len() >= 4, "{structure}: {fields:?}");
        for field in fields {
            let reads = receivers.iter().map(|receiver| format!("{receiver}.{field}"));
            let found = reads.into_iter().any(|read| code.iter().any(|text| is_read(text, &read)));
            assert!(found, "no code reads `{field}` of {structure}: delete it");
        }
    }
}
