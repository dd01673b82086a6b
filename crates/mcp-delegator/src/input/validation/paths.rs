//! Resolves relative paths on the command line.
//!
//! A person types paths relative to the current directory. A tool call must give absolute paths, because an
//! MCP client does not know the server's directory; the checks of the command refuse relative ones.

use std::path::Path;

use serde_json::Value;

use crate::spec::{InputSchema, Marker, Property};

/// Makes the paths in the input absolute. An empty path stays as it is: the schema refuses it.
pub(super) fn resolve(inputs: &InputSchema, input: &mut Value, current_dir: &Path) {
    for Property { name, .. } in inputs.properties.iter().filter(|property| property.has(&Marker::Path)) {
        match input.get_mut(name) {
            Some(Value::Array(items)) => items.iter_mut().for_each(|item| resolve_one(item, current_dir)),
            Some(value) => resolve_one(value, current_dir),
            None => {}
        }
    }
}

fn resolve_one(value: &mut Value, current_dir: &Path) {
    if let Value::String(path) = value
        && !path.is_empty()
        && !path.starts_with('/')
    {
        *path = normalize(&current_dir.join(&*path)).display().to_string();
    }
}

/// Removes `.` components. `..` stays: behind a symbolic link it does not lead back.
fn normalize(path: &Path) -> std::path::PathBuf {
    path.components().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn relative_paths_start_in_the_current_directory() {
        let inputs = crate::commands::local::exec::SPEC.inputs();
        let mut input = json!({
            "task": "web", "working_dir": "./web/", "add_dirs": ["../lib", "/abs", ""], "images": "not a list"
        });
        resolve(&inputs, &mut input, Path::new("/home/me/p"));
        let expected = json!({
            "task": "web", "working_dir": "/home/me/p/web", "add_dirs": ["/home/me/p/../lib", "/abs", ""],
            "images": "/home/me/p/not a list"
        });
        assert_eq!(input, expected);
        input = json!({"working_dir": "."});
        resolve(&inputs, &mut input, Path::new("/home/me/p"));
        assert_eq!(input, json!({"working_dir": "/home/me/p"}));
    }
}
