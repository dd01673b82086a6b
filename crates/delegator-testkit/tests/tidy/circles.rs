//! No files of a crate use each other in a circle, and the way to read a crate is from the files that use no other one upwards.
//!
//! A module is one unit with those that it contains: it may use them, and they may use what it defines. Otherwise a file
//! uses another one if it names something that the other one defines, also through a re-export. Calls of methods are
//! not seen, as the lexer does not know types.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use delegator_testkit::generated::workspace;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

type ModulePath = Vec<String>;

/// Which module uses which, with a name that it uses.
type Uses<'a> = BTreeMap<&'a ModulePath, BTreeMap<ModulePath, &'a str>>;

/// What a file says of its names.
#[derive(Default)]
struct Module {
    file: PathBuf,
    children: BTreeSet<String>,
    defined: BTreeSet<String>,
    /// The paths that `use` items give a name in this file.
    imports: BTreeMap<String, Vec<String>>,
    /// The paths that `use` items import with `*`.
    globs: Vec<Vec<String>>,
    /// Every path with at least two segments, those of `use` items as well.
    paths: BTreeSet<Vec<String>>,
}

const ITEMS: [&str; 9] = ["const", "enum", "fn", "macro_rules", "static", "struct", "trait", "type", "union"];

impl Module {
    fn read(file: PathBuf) -> Module {
        let text = std::fs::read_to_string(&file).unwrap();
        let tokens: TokenStream = text.parse().unwrap();
        let mut module = Module { file, ..Module::default() };
        module.scan(tokens, true);
        module
    }

    fn scan(&mut self, tokens: TokenStream, is_top_level: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut rest = &tokens[..];
        while let [first, after @ ..] = rest {
            rest = after;
            match first {
                TokenTree::Punct(punct) if punct.as_char() == '#' && is_test_attribute(after) => {
                    rest = after_item(after);
                }
                TokenTree::Ident(word) if *word == "use" => rest = self.read_use(after, Vec::new()),
                TokenTree::Ident(word) if *word == "mod" && is_top_level => {
                    self.children.insert(after[0].to_string());
                }
                TokenTree::Ident(word) => {
                    if is_top_level && ITEMS.contains(&word.to_string().as_str()) {
                        let name = after.iter().find(|token| matches!(token, TokenTree::Ident(_)));
                        self.defined.extend(name.map(ToString::to_string));
                    }
                    let mut path = vec![word.to_string()];
                    while let Some((segment, after)) = next_segment(rest) {
                        path.push(segment);
                        rest = after;
                    }
                    if path.len() > 1 {
                        self.paths.insert(path);
                    }
                }
                TokenTree::Group(group) => self.scan(group.stream(), false),
                _ => {}
            }
        }
    }

    /// Reads what a `use` item imports below `prefix`; returns the tokens after it.
    fn read_use<'a>(&mut self, tokens: &'a [TokenTree], prefix: Vec<String>) -> &'a [TokenTree] {
        let mut path = prefix.clone();
        let mut name = None;
        let mut rest = tokens;
        while let [first, after @ ..] = rest {
            rest = after;
            match first {
                TokenTree::Ident(word) if *word == "as" => {
                    name = Some(after[0].to_string());
                    rest = &after[1..];
                }
                TokenTree::Ident(word) => path.push(word.to_string()),
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    let mut entries = &inner[..];
                    while !entries.is_empty() {
                        entries = self.read_use(entries, path.clone());
                    }
                    path.clone_from(&prefix);
                }
                TokenTree::Punct(punct) if punct.as_char() == '*' => {
                    self.globs.push(std::mem::replace(&mut path, prefix.clone()));
                }
                TokenTree::Punct(punct) if [',', ';'].contains(&punct.as_char()) => break,
                _ => {}
            }
        }
        if path.len() > prefix.len() {
            if path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            self.imports.insert(name.unwrap_or_else(|| path.last().unwrap().clone()), path.clone());
            self.paths.insert(path);
        }
        rest
    }
}

fn is_test_attribute(after_hash: &[TokenTree]) -> bool {
    let attribute = after_hash.first().map(ToString::to_string).unwrap_or_default().replace(' ', "");
    attribute.starts_with("[cfg(test") || attribute.starts_with("[cfg(all(test")
}

/// The tokens after the next item: it ends with a semicolon or a block.
fn after_item(tokens: &[TokenTree]) -> &[TokenTree] {
    let is_end = |token: &TokenTree| match token {
        TokenTree::Punct(punct) => punct.as_char() == ';',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        _ => false,
    };
    let end = tokens.iter().position(is_end).map_or(tokens.len(), |end| end + 1);
    &tokens[end..]
}

/// The identifier after `::`, and the tokens after it.
fn next_segment(tokens: &[TokenTree]) -> Option<(String, &[TokenTree])> {
    match tokens {
        [TokenTree::Punct(first), TokenTree::Punct(second), TokenTree::Ident(segment), rest @ ..]
            if first.as_char() == ':' && second.as_char() == ':' =>
        {
            Some((segment.to_string(), rest))
        }
        _ => None,
    }
}

/// The modules of a crate by their paths; the root is the empty path.
struct Crate(BTreeMap<ModulePath, Module>);

impl Crate {
    fn read(root: &Path) -> Crate {
        let mut modules = BTreeMap::new();
        let mut unread = vec![(ModulePath::new(), root.to_owned(), root.parent().unwrap().to_owned())];
        while let Some((path, file, folder)) = unread.pop() {
            let module = Module::read(file);
            for child in &module.children {
                let child_folder = folder.join(child);
                let files = [folder.join(format!("{child}.rs")), child_folder.join("mod.rs")];
                let Some(file) = files.into_iter().find(|file| file.exists()) else { continue };
                let child_path = path.iter().chain([child]).cloned().collect();
                unread.push((child_path, file, child_folder));
            }
            modules.insert(path, module);
        }
        Crate(modules)
    }

    /// The module that defines what a path names in `module`; nothing if it is no item of this crate.
    fn definition(&self, module: &[String], path: &[String], depth: usize) -> Option<ModulePath> {
        let (first, rest) = path.split_first().filter(|_| depth < 12)?;
        match first.as_str() {
            "crate" => self.item(&[], rest, depth),
            "self" => self.item(module, rest, depth),
            "super" => self.definition_in_parent(module, rest, depth),
            name => {
                let known = &self.0[module];
                let is_known = known.children.contains(name) || known.imports.contains_key(name);
                // A name that imports itself, such as the name of another crate, leads nowhere.
                let is_itself = known.imports.get(name).is_some_and(|import| import[0] == *name);
                if is_known && !is_itself { self.item(module, path, depth) } else { None }
            }
        }
    }

    fn definition_in_parent(&self, module: &[String], path: &[String], depth: usize) -> Option<ModulePath> {
        let (_, parent) = module.split_last()?;
        match path.split_first() {
            Some((first, rest)) if first == "super" => self.definition_in_parent(parent, rest, depth),
            _ => self.item(parent, path, depth),
        }
    }

    fn item(&self, module: &[String], path: &[String], depth: usize) -> Option<ModulePath> {
        let (name, rest) = path.split_first().filter(|_| depth < 12)?;
        let known = &self.0[module];
        let child: ModulePath = module.iter().chain([name]).cloned().collect();
        if self.0.contains_key(&child) {
            return self.item(&child, rest, depth + 1);
        }
        if known.defined.contains(name) {
            return Some(module.to_vec());
        }
        if let Some(import) = known.imports.get(name) {
            return self.definition(module, &[import, rest].concat(), depth + 1);
        }
        let of_globs = known.globs.iter();
        of_globs.filter_map(|glob| self.definition(module, &[glob, path].concat(), depth + 1)).next()
    }

    fn uses(&self) -> Uses<'_> {
        let uses_of = |(path, module)| (path, self.uses_of(path, module));
        self.0.iter().map(uses_of).collect()
    }

    fn uses_of<'a>(&self, path: &ModulePath, module: &'a Module) -> BTreeMap<ModulePath, &'a str> {
        let used = module.paths.iter();
        let defined = used.filter_map(|used| Some((self.definition(path, used, 0)?, used.last()?.as_str())));
        defined.filter(|(definition, _)| !definition.starts_with(path)).collect()
    }
}

/// All modules that `start` uses, directly or through others.
fn reachable(uses: &Uses, start: &ModulePath) -> BTreeSet<ModulePath> {
    let mut reached = BTreeSet::new();
    let mut unread = vec![start.clone()];
    while let Some(path) = unread.pop() {
        for used in uses[&path].keys() {
            if reached.insert(used.clone()) {
                unread.push(used.clone());
            }
        }
    }
    reached
}

/// The circles of a crate, each with the uses that form it.
fn circles(modules: &Crate) -> Vec<String> {
    let uses = modules.uses();
    let reached: BTreeMap<&ModulePath, _> = uses.keys().map(|path| (*path, reachable(&uses, path))).collect();
    let mut found = BTreeMap::new();
    for path in uses.keys().filter(|path| reached[*path].contains(**path)) {
        let members: BTreeSet<&ModulePath> =
            reached[path].iter().filter(|other| reached[other].contains(*path)).collect();
        found.entry(members.clone()).or_insert_with(|| describe(modules, &uses, &members));
    }
    found.into_values().collect()
}

fn describe(modules: &Crate, uses: &Uses, members: &BTreeSet<&ModulePath>) -> String {
    let mut text = format!("{} files\n", members.len());
    for member in members {
        let inside = uses[*member].iter().filter(|(used, _)| members.contains(used));
        let names = inside.map(|(used, name)| format!("{} ({name})", used.join("::")));
        let file = modules.0[*member].file.strip_prefix(workspace().join("crates")).unwrap();
        text += &format!("  {} uses {}\n", file.display(), names.collect::<Vec<_>>().join(", "));
    }
    text
}

#[test]
fn no_files_of_a_crate_use_each_other_in_a_circle() {
    let mut found = Vec::new();
    let mut checked = 0;
    for entry in std::fs::read_dir(workspace().join("crates")).unwrap() {
        let source = entry.unwrap().path().join("src");
        let root = [source.join("lib.rs"), source.join("main.rs")].into_iter().find(|root| root.exists());
        let modules = Crate::read(&root.unwrap());
        checked += modules.uses().values().map(BTreeMap::len).sum::<usize>();
        found.extend(circles(&modules));
    }
    assert!(found.is_empty(), "{} circles:\n{}", found.len(), found.concat());
    assert!(checked > 2000, "only {checked} uses were found");
}
