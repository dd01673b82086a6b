//! Random work trees and random changes of them: text with either line ending, binary and empty files, links,
//! modes, nested directories, renames and deletions.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use proptest::prelude::*;
use proptest::sample::select;

use crate::world::World;

/// Some are directories of others; then only one of them exists.
const NAMES: [&str; 9] =
    ["a", "b c", "d", "d/x", "d/e/z", "run.sh", "q/\"quoted\"\tä", "q/new\nline", "q/r/s/deep"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    File { content: Vec<u8>, is_executable: bool },
    Link(String),
}

/// The entries of a work tree by path.
pub(crate) type RandomTree = BTreeMap<&'static str, Entry>;

#[derive(Debug, Clone)]
pub(crate) enum TreeEdit {
    Put(&'static str, Entry),
    Remove(&'static str),
    Rename(&'static str, &'static str),
    Mode(&'static str),
    ReplaceLine(&'static str, usize, u8),
    InsertLine(&'static str, usize, u8),
    DropLine(&'static str, usize),
    TrimEnd(&'static str),
}

fn name() -> impl Strategy<Value = &'static str> {
    select(&NAMES[..])
}

fn lines(lines: &[u8], line_break: &str) -> Vec<u8> {
    lines.iter().flat_map(|line| format!("line {line}{line_break}").into_bytes()).collect()
}

fn entry() -> impl Strategy<Value = Entry> {
    let text = |line_break: &'static str| {
        proptest::collection::vec(0..6_u8, 1..16).prop_map(move |numbers| lines(&numbers, line_break))
    };
    let content = prop_oneof![
        6 => text("\n"),
        2 => text("\r\n"),
        2 => proptest::collection::vec(any::<u8>(), 1..40).prop_map(|bytes| [b"\0".as_slice(), &bytes].concat()),
        1 => Just(Vec::new()),
        1 => Just(b"no line break".to_vec()),
    ];
    prop_oneof![
        9 => (content, any::<bool>())
            .prop_map(|(content, is_executable)| Entry::File { content, is_executable }),
        1 => name().prop_map(|target| Entry::Link(target.to_owned())),
    ]
}

pub(crate) fn random_tree() -> impl Strategy<Value = RandomTree> {
    proptest::collection::vec((name(), entry()), 0..9).prop_map(|entries| {
        let mut tree = RandomTree::new();
        entries.into_iter().for_each(|(name, entry)| put(&mut tree, name, entry));
        tree
    })
}

pub(crate) fn tree_edits() -> impl Strategy<Value = Vec<TreeEdit>> {
    let at = || 0..16_usize;
    let edit = prop_oneof![
        3 => (name(), entry()).prop_map(|(name, entry)| TreeEdit::Put(name, entry)),
        2 => name().prop_map(TreeEdit::Remove),
        3 => (name(), name()).prop_map(|(from, to)| TreeEdit::Rename(from, to)),
        1 => name().prop_map(TreeEdit::Mode),
        4 => (name(), at(), 0..6_u8).prop_map(|(name, at, line)| TreeEdit::ReplaceLine(name, at, line)),
        4 => (name(), at(), 0..6_u8).prop_map(|(name, at, line)| TreeEdit::InsertLine(name, at, line)),
        3 => (name(), at()).prop_map(|(name, at)| TreeEdit::DropLine(name, at)),
        1 => name().prop_map(TreeEdit::TrimEnd),
    ];
    proptest::collection::vec(edit, 0..8)
}

/// Adds an entry and removes those that cannot exist beside it.
fn put(tree: &mut RandomTree, name: &'static str, entry: Entry) {
    let is_below =
        |path: &str, above: &str| path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'));
    tree.retain(|other, _| !is_below(other, name) && !is_below(name, other));
    tree.insert(name, entry);
}

pub(crate) fn edited(tree: &RandomTree, edits: &[TreeEdit]) -> RandomTree {
    let mut tree = tree.clone();
    for edit in edits {
        match edit {
            TreeEdit::Put(name, entry) => put(&mut tree, name, entry.clone()),
            TreeEdit::Remove(name) => drop(tree.remove(name)),
            TreeEdit::Rename(from, to) => {
                if let Some(entry) = tree.remove(from) {
                    put(&mut tree, to, entry);
                }
            }
            TreeEdit::Mode(name) => {
                if let Some(Entry::File { is_executable, .. }) = tree.get_mut(name) {
                    *is_executable = !*is_executable;
                }
            }
            TreeEdit::ReplaceLine(name, at, line) => edit_lines(&mut tree, name, |lines| {
                let at = at % lines.len().max(1);
                if let Some(old) = lines.get_mut(at) {
                    *old = new_line(*line, old);
                }
            }),
            TreeEdit::InsertLine(name, at, line) => edit_lines(&mut tree, name, |lines| {
                let like = lines.first().cloned().unwrap_or_default();
                lines.insert(at % (lines.len() + 1), new_line(*line, &like));
            }),
            TreeEdit::DropLine(name, at) => edit_lines(&mut tree, name, |lines| {
                if !lines.is_empty() {
                    lines.remove(at % lines.len());
                }
            }),
            TreeEdit::TrimEnd(name) => edit_lines(&mut tree, name, |lines| {
                if let Some(last) = lines.last_mut() {
                    last.pop();
                }
            }),
        }
    }
    tree
}

/// A line with the line ending of another one.
fn new_line(number: u8, like: &[u8]) -> Vec<u8> {
    lines(&[number], if like.ends_with(b"\r\n") { "\r\n" } else { "\n" })
}

fn edit_lines(tree: &mut RandomTree, name: &str, edit: impl FnOnce(&mut Vec<Vec<u8>>)) {
    if let Some(Entry::File { content, .. }) = tree.get_mut(name) {
        let mut lines: Vec<Vec<u8>> =
            content.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        edit(&mut lines);
        *content = lines.concat();
    }
}

impl World {
    /// Makes the work tree exactly this one.
    pub(crate) fn put_tree(&self, tree: &RandomTree) {
        for entry in fs::read_dir(&self.tree).unwrap() {
            let entry = entry.unwrap();
            match (entry.file_name() == ".git", entry.file_type().unwrap().is_dir()) {
                (true, _) => {}
                (_, true) => fs::remove_dir_all(entry.path()).unwrap(),
                (_, false) => fs::remove_file(entry.path()).unwrap(),
            }
        }
        for (name, entry) in tree {
            match entry {
                Entry::File { content, is_executable } => {
                    self.write(name, content);
                    let mode = if *is_executable { 0o755 } else { 0o644 };
                    fs::set_permissions(self.tree.join(name), Permissions::from_mode(mode)).unwrap();
                }
                Entry::Link(target) => {
                    let path = self.tree.join(name);
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    symlink(target, path).unwrap();
                }
            }
        }
    }
}
