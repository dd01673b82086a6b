//! Where files are searched.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::{UserFile, environments_file, project_file, search_path, state_dir, user_file};
use crate::locations::Sources;

type Variables<'a> = &'a [(&'a str, &'a str)];

fn sources(variables: Variables<'_>) -> Sources {
    let environment =
        variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect();
    Sources { environment, current_dir: PathBuf::from("/p"), ..Sources::default() }
}

#[test]
fn the_user_file_is_the_explicit_one_or_the_standard_one() {
    let cases: [(Variables<'_>, Option<(&str, bool)>); 9] = [
        (&[("HOME", "/h")], Some(("/h/.config/mcp-delegator/config.toml", false))),
        (&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")], Some(("/x/mcp-delegator/config.toml", false))),
        (
            &[("HOME", "/h"), ("XDG_CONFIG_HOME", "rel")],
            Some(("/h/.config/mcp-delegator/config.toml", false)),
        ),
        (&[("HOME", "/h"), ("XDG_CONFIG_HOME", "")], Some(("/h/.config/mcp-delegator/config.toml", false))),
        (&[("HOME", "/h"), ("MCP_DELEGATOR_CONFIG", "/c.toml")], Some(("/c.toml", true))),
        (&[("HOME", "/h"), ("MCP_DELEGATOR_CONFIG", "~/c.toml")], Some(("/h/c.toml", true))),
        (
            &[("HOME", "/h"), ("MCP_DELEGATOR_CONFIG", "")],
            Some(("/h/.config/mcp-delegator/config.toml", false)),
        ),
        (&[], None),
        (&[("HOME", "rel")], None),
    ];
    for (variables, expected) in cases {
        let expected =
            expected.map(|(path, is_named)| UserFile { path: PathBuf::from(path), is_explicit: is_named });
        assert_eq!(user_file(&sources(variables)), Ok(expected), "{variables:?}");
    }
}

#[test]
fn the_state_directory_is_explicit_or_standard() {
    let cases: [(Variables<'_>, &str); 4] = [
        (&[("HOME", "/h")], "/h/.local/state/mcp-delegator"),
        (&[("HOME", "/h"), ("XDG_STATE_HOME", "/s")], "/s/mcp-delegator"),
        (&[("HOME", "/h"), ("XDG_STATE_HOME", "./s")], "/h/.local/state/mcp-delegator"),
        (&[("XDG_STATE_HOME", "/s"), ("MCP_DELEGATOR_HOME", "/m")], "/m"),
    ];
    for (variables, expected) in cases {
        assert_eq!(state_dir(&sources(variables)), Ok(PathBuf::from(expected)), "{variables:?}");
    }
}

#[test]
fn a_directory_that_is_not_utf8_is_still_a_directory() {
    let name = OsString::from_vec(b"/s\xff".to_vec());
    let mut sources = sources(&[]);
    sources.environment.insert("MCP_DELEGATOR_HOME".into(), name.clone());
    assert_eq!(state_dir(&sources), Ok(PathBuf::from(name)));
}

#[test]
fn without_a_home_the_error_names_the_variable_to_set() {
    let error = state_dir(&sources(&[])).unwrap_err().to_string();
    assert!(error.contains("MCP_DELEGATOR_HOME") && error.contains("HOME is set"), "{error}");
    let error = environments_file(&sources(&[])).unwrap_err().to_string();
    assert!(error.contains("MCP_DELEGATOR_CONFIG"), "{error}");
    let error = state_dir(&sources(&[("MCP_DELEGATOR_HOME", "state")])).unwrap_err().to_string();
    assert!(error.contains("absolute"), "{error}");
}

#[test]
fn the_environments_file_is_beside_the_user_file() {
    let found = environments_file(&sources(&[("MCP_DELEGATOR_CONFIG", "/etc/d/my.toml")]));
    assert_eq!(found, Ok(PathBuf::from("/etc/d/environments.json")));
}

#[test]
fn the_search_ends_at_the_git_directory() {
    let up_to =
        |git: &'static str| search_path(Path::new("/a/b/c"), move |directory| directory == Path::new(git));
    assert_eq!(up_to("/a/b"), [Path::new("/a/b/c"), Path::new("/a/b")]);
    assert_eq!(up_to("/a/b/c"), [Path::new("/a/b/c")]);
    assert_eq!(up_to("/elsewhere"), [Path::new("/a/b/c")]);
}

#[test]
fn the_nearest_project_file_inside_the_work_tree_counts() {
    let temp = tempfile::tempdir().unwrap();
    let (outer, root) = (temp.path(), temp.path().join("repo"));
    let deep = root.join("a/b");
    fs::create_dir_all(&deep).unwrap();
    fs::write(outer.join(".mcp-delegator.toml"), "").unwrap();
    assert_eq!(project_file(&deep, None), Ok(None), "no git: only the current directory");

    fs::write(root.join(".git"), "gitdir: elsewhere").unwrap();
    assert_eq!(project_file(&deep, None), Ok(None), "never above the work tree");
    fs::write(root.join(".mcp-delegator.toml"), "").unwrap();
    assert_eq!(project_file(&deep, None), Ok(Some(root.join(".mcp-delegator.toml"))));
    fs::write(root.join("a/.mcp-delegator.toml"), "").unwrap();
    assert_eq!(project_file(&deep, None), Ok(Some(root.join("a/.mcp-delegator.toml"))));

    let own = UserFile { path: root.join("a/../a/.mcp-delegator.toml"), is_explicit: true };
    assert_eq!(project_file(&deep, Some(&own)), Ok(Some(root.join(".mcp-delegator.toml"))));
}

#[test]
fn a_project_file_must_not_link_out_of_the_project() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().join("repo");
    fs::create_dir_all(root.join(".git")).unwrap();
    fs::write(root.join(".git/HEAD"), "ref: refs/heads/main").unwrap();
    fs::write(temp.path().join("secret"), "").unwrap();
    fs::write(root.join("inside.toml"), "").unwrap();
    let link = root.join(".mcp-delegator.toml");

    symlink("../secret", &link).unwrap();
    let error = project_file(&root, None).unwrap_err();
    assert_eq!(error.problems[0].file.as_deref(), Some(link.as_path()));
    assert!(error.problems[0].problem.contains("leads out"));

    fs::remove_file(&link).unwrap();
    symlink("inside.toml", &link).unwrap();
    assert_eq!(project_file(&root, None), Ok(Some(link)));
}
