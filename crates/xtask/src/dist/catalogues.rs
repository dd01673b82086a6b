//! What catalogues and clients of MCP read: `server.json`, the manifest of the bundle, and links that install the server.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::npm::PlatformFiles;
use super::product::{DESCRIPTION, KEYWORDS, NAME, Platform, Product, REGISTRY_NAME, SERVER_ARGS, TITLE};
use super::tree::Tree;

const SERVER_SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";

pub(crate) fn bundle_name(product: &Product, platform: &Platform) -> String {
    format!("{}.mcpb", product.archive_name(platform))
}

/// An MCP bundle: a client starts the program in it.
pub(crate) fn bundle(product: &Product, files: &PlatformFiles) -> Tree {
    let program = format!("server/{NAME}");
    let manifest = json!({
        "manifest_version": "0.3",
        "name": NAME,
        "display_name": TITLE,
        "version": product.version,
        "description": DESCRIPTION,
        "author": { "name": TITLE, "url": product.repository },
        "repository": { "type": "git", "url": product.repository },
        "license": product.license,
        "keywords": KEYWORDS,
        "server": {
            "type": "binary",
            "entry_point": program,
            "mcp_config": { "command": format!("${{__dirname}}/{program}"), "args": SERVER_ARGS, "env": {} },
        },
        // The program lists its tools when it is asked.
        "tools_generated": true,
        "compatibility": { "platforms": ["linux"] },
    });
    let mut tree = Tree::default();
    tree.add("manifest.json", format!("{manifest:#}\n"));
    tree.add_program(program, files.program.as_slice());
    tree.add("LICENSE", files.license.as_slice());
    tree.add("THIRD-PARTY-NOTICES.txt", files.notices.as_str());
    tree
}

/// The entry of the MCP registry. `bundles` are file names with their SHA-256.
pub(crate) fn server_json(product: &Product, bundles: &[(String, String)]) -> Value {
    let package = |kind: &str, runtime: &str| {
        json!({
            "registryType": kind,
            "identifier": NAME,
            "version": product.version,
            "runtimeHint": runtime,
            "transport": { "type": "stdio" },
            "packageArguments": SERVER_ARGS.map(|value| json!({ "type": "positional", "value": value })),
        })
    };
    let bundles = bundles.iter().map(|(file, sha256)| {
        json!({
            "registryType": "mcpb",
            "identifier": product.download(file),
            "version": product.version,
            "fileSha256": sha256,
            "transport": { "type": "stdio" },
        })
    });
    let packages: Vec<Value> =
        [package("npm", "npx"), package("pypi", "uvx")].into_iter().chain(bundles).collect();
    json!({
        "$schema": SERVER_SCHEMA,
        "name": REGISTRY_NAME,
        "title": TITLE,
        "description": DESCRIPTION,
        "version": product.version,
        "repository": { "url": product.repository, "source": "github" },
        "packages": packages,
    })
}

/// How clients start the server from npm.
fn npx_entry() -> Value {
    let args: Vec<&str> = ["-y", NAME].into_iter().chain(SERVER_ARGS).collect();
    json!({ "command": "npx", "args": args })
}

/// A link that opens Cursor and adds the server.
pub(crate) fn cursor_link() -> String {
    let config = percent_encoded(&STANDARD.encode(npx_entry().to_string()));
    format!("https://cursor.com/install-mcp?name={NAME}&config={config}")
}

/// A link that opens VS Code and adds the server. Pages do not link to `vscode:` itself, so it goes through a redirect.
pub(crate) fn vscode_link() -> String {
    let mut entry = npx_entry();
    entry["name"] = json!(NAME);
    let link = format!("vscode:mcp/install?{}", percent_encoded(&entry.to_string()));
    format!("https://vscode.dev/redirect?url={}", percent_encoded(&link))
}

fn percent_encoded(text: &str) -> String {
    let encoded = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_contain_the_command_that_starts_the_server() {
        let entry = json!({"command": "npx", "args": ["-y", "mcp-delegator", "serve", "--toolsets", "local,registry"]});
        let cursor = cursor_link();
        let config = decoded(cursor.split_once("&config=").unwrap().1);
        let config = STANDARD.decode(config).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&config).unwrap(), entry);
        let vscode = decoded(vscode_link().split_once("?url=").unwrap().1);
        let config = decoded(vscode.strip_prefix("vscode:mcp/install?").unwrap());
        let mut named = entry;
        named["name"] = json!("mcp-delegator");
        assert_eq!(serde_json::from_str::<Value>(&config).unwrap(), named);
    }

    fn decoded(text: &str) -> String {
        let mut parts = text.split('%');
        let mut bytes = parts.next().unwrap().as_bytes().to_vec();
        for part in parts {
            bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
            bytes.extend(part[2..].bytes());
        }
        String::from_utf8(bytes).unwrap()
    }
}
