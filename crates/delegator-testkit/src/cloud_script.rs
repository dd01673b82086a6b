//! Lets the agent's program of a test world answer `codex cloud` as for one hosted task that has completed. For tests
//! about our own side; [`crate::fake_cloud`] is for tests with the real Codex.

use std::path::{Path, PathBuf};

use serde_json::json;

/// An environments file with one environment, `env_site`.
pub const ENVIRONMENTS: &str =
    r#"{"env_site": {"name": "Site", "repoUrl": "https://github.com/me/site", "stack": "node"}}"#;
/// The change of the task, in a file that contains `committed`.
pub const DIFF: &str =
    "diff --git a/code.txt b/code.txt\n--- a/code.txt\n+++ b/code.txt\n@@ -1 +1 @@\n-committed\n+hosted\n";

/// Changes `bin/codex` in the world with this root. Returns the file to which each submission adds a line.
pub fn answer_cloud_commands(root: &Path) -> PathBuf {
    let page = "https://chatgpt.com/codex/tasks/task_e_1";
    let task = json!({
        "id": "task_e_1", "url": page, "title": "grow", "status": "ready", "updated_at": "2026-11-16T00:00:00Z",
        "environment_id": null, "environment_label": "Site", "is_review": false, "attempt_total": 1,
        "summary": {"files_changed": 1, "lines_added": 1, "lines_removed": 1},
    });
    let list = json!({"tasks": [task], "cursor": null});
    let (codex, submissions) = (root.join("bin/codex"), root.join("cloud-submissions"));
    let local = std::fs::read_to_string(&codex).unwrap().replacen("#!/bin/sh\n", "", 1);
    let script = format!(
        "#!/bin/sh\ncase \"$1 $2\" in\n'cloud exec') echo x >> {}; echo {page}; exit ;;\n\
         'cloud list') echo '{list}'; exit ;;\n'cloud diff') printf '{}'; exit ;;\nesac\n{local}",
        submissions.display(),
        DIFF.replace('\n', "\\n")
    );
    std::fs::write(&codex, script).unwrap();
    submissions
}
