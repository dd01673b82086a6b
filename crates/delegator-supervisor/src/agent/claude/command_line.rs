//! Builds the command line: a pure function, except that it reads the output schema and whether the project
//! has settings.
//!
//! Every value is attached to its flag (`--model=…`), so that none can become a flag. The task text goes to
//! standard input.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use delegator_domain::task::RunSettings;

use crate::agent::arg_list::ArgList;
use crate::agent::launch::{LaunchRequest, PlanError, permission_policy};
use crate::conversation::{ClaudePlan, ConversationPlan};

/// Others are ignored by Claude Code, with a warning.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];
/// The schema is one argument, and Linux allows 128 KiB for each.
const MAX_SCHEMA_BYTES: u64 = 120 << 10;

pub(in crate::agent) fn args(request: &LaunchRequest) -> Result<Vec<OsString>, PlanError> {
    validate(&request.run)?;
    let schema = request.read_output_schema(MAX_SCHEMA_BYTES, "it is longer than 120 KiB")?;
    Ok(build(&request.run, schema.as_deref(), defines_programs(&request.run.working_dir)))
}

fn build(run: &RunSettings, schema: Option<&str>, project_defines_programs: bool) -> Vec<OsString> {
    let mut args = ArgList::default();
    args.push(&[
        "-p",
        "--input-format=stream-json",
        "--output-format=stream-json",
        "--verbose",
        "--permission-prompt-tool=stdio",
        // The user's settings may name another mode, in which nothing is asked.
        "--permission-mode=default",
    ]);
    if project_defines_programs {
        args.push(&["--setting-sources=user"]);
    }
    args.push_option("--model", run.model.as_deref());
    args.push_option("--effort", run.reasoning_effort.as_deref());
    args.push_option("--json-schema", schema);
    args.push_option("--resume", run.resume.as_deref());
    for directory in &run.add_dirs {
        args.push_path("--add-dir", directory);
    }
    args.0
}

pub(in crate::agent) fn validate(run: &RunSettings) -> Result<(), PlanError> {
    let effort = run.reasoning_effort.as_deref();
    if effort.is_some_and(|effort| !EFFORTS.contains(&effort)) {
        return Err(PlanError::value("reasoning_effort", "claude accepts low, medium, high, xhigh and max"));
    }
    if run.resume.as_deref().is_some_and(|thread| thread.trim().is_empty()) {
        return Err(PlanError::value("thread_id", "it is empty"));
    }
    for (field, text) in [("model", &run.model), ("thread_id", &run.resume)] {
        if text.as_deref().is_some_and(|text| text.contains('\0')) {
            return Err(PlanError::value(field, "it contains a NUL character"));
        }
    }
    if run.add_dirs.iter().any(|path| path.as_os_str().as_bytes().contains(&0)) {
        return Err(PlanError::value("add_dirs", "one contains a NUL character"));
    }
    Ok(())
}

/// What is said to the agent. `is_enforced`: we enclose it.
pub(in crate::agent) fn conversation(request: &LaunchRequest, is_enforced: bool) -> ConversationPlan {
    let permissions = permission_policy(&request.run, request.run.effective_mode(), is_enforced);
    ConversationPlan::Claude(ClaudePlan { prompt: request.prompt(), permissions })
}

/// Whether the project defines something that would run.
///
/// The folder `.claude` of the working directory can define hooks and programs that print credentials;
/// `.mcp.json` there or in a parent directory defines servers. Measured with 2.1.325: with `-p` all of them
/// run without a question, also where the user has not trusted the directory. Without the settings of the
/// project (`--setting-sources=user`) they do not run, but no CLAUDE.md of the project is read either.
/// Therefore the settings are left out only where there are such files.
fn defines_programs(workdir: &Path) -> bool {
    // What cannot be examined counts as present.
    let exists = |path: &Path| !matches!(path.symlink_metadata(), Err(error) if error.kind() == std::io::ErrorKind::NotFound);
    exists(&workdir.join(".claude"))
        || workdir.ancestors().any(|directory| exists(&directory.join(".mcp.json")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::launch::tests::{request, request_with};

    fn texts(request: &LaunchRequest, schema: Option<&str>, defines: bool) -> Vec<String> {
        build(&request.run, schema, defines).into_iter().map(|arg| arg.into_string().unwrap()).collect()
    }

    #[test]
    fn values_are_attached_to_their_flags() {
        let request = request_with(|run| {
            run.model = Some("--evil".to_owned());
            run.reasoning_effort = Some("high".to_owned());
            run.resume = Some("6ed1".to_owned());
            run.add_dirs = vec!["/a b".into(), "/c".into()];
        });
        let args = texts(&request, Some(r#"{"type":"object"}"#), true);
        assert_eq!(
            args[5..],
            [
                "--permission-mode=default",
                "--setting-sources=user",
                "--model=--evil",
                "--effort=high",
                r#"--json-schema={"type":"object"}"#,
                "--resume=6ed1",
                "--add-dir=/a b",
                "--add-dir=/c",
            ]
        );
        assert!(!args.iter().any(|arg| arg.contains(&request.task)), "the task text is no argument");
    }

    #[test]
    fn a_simple_task_has_no_further_arguments() {
        let args = texts(&request(), None, false);
        assert_eq!(args[0], "-p");
        assert_eq!(args.len(), 6);
    }

    #[test]
    fn what_it_would_ignore_is_refused() {
        let with_effort = |effort: &str| {
            let request = request_with(|run| run.reasoning_effort = Some(effort.to_owned()));
            validate(&request.run).err().and_then(|error| error.input())
        };
        assert_eq!((with_effort("max"), with_effort("minimal")), (None, Some("reasoning_effort")));
        let empty = request_with(|run| run.resume = Some(" ".to_owned()));
        assert_eq!(validate(&empty.run).unwrap_err().input(), Some("thread_id"));
        let missing = LaunchRequest { output_schema: Some("/no/such/file".into()), ..request() };
        assert_eq!(args(&missing).unwrap_err().input(), Some("output_schema"));
    }

    #[test]
    fn a_folder_of_settings_and_servers_of_parents_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let workdir = folder.path().join("a/b");
        std::fs::create_dir_all(&workdir).unwrap();
        std::fs::create_dir(folder.path().join(".claude")).unwrap();
        assert!(!defines_programs(&workdir), "only the folder of the working directory counts");
        std::os::unix::fs::symlink("nowhere", workdir.join(".claude")).unwrap();
        assert!(defines_programs(&workdir));
        std::fs::remove_file(workdir.join(".claude")).unwrap();
        std::fs::write(folder.path().join(".mcp.json"), "{}").unwrap();
        assert!(defines_programs(&workdir));
    }
}
