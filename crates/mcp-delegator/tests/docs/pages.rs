//! Finds the commands in the Markdown pages: lines of `sh` blocks, and code spans that run this program.

use std::path::{Path, PathBuf};

use delegator_testkit::generated::workspace;

/// A Markdown page.
pub(crate) struct Page {
    /// Path relative to the workspace.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Commands that belong together and run in order.
pub(crate) struct Block {
    pub(crate) page: String,
    line: usize,
    pub(crate) commands: Vec<String>,
    /// The user's configuration: the last `toml` block before it.
    pub(crate) config: String,
}

impl Block {
    pub(crate) fn location(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }
}

/// The pages in the root of the workspace and below `docs`.
pub(crate) fn all() -> Vec<Page> {
    let mut paths = Vec::new();
    collect_pages(&workspace(), false, &mut paths);
    collect_pages(&workspace().join("docs"), true, &mut paths);
    paths.sort();
    assert!(paths.len() > 10, "only {} pages were found", paths.len());
    let name = |path: &Path| path.strip_prefix(workspace()).unwrap().display().to_string();
    paths.iter().map(|path| Page { path: name(path), text: std::fs::read_to_string(path).unwrap() }).collect()
}

fn collect_pages(folder: &Path, recursive: bool, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && recursive {
            collect_pages(&path, recursive, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

impl Page {
    /// One block for each `sh` fence, and one for each code span with a command of this program.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut fence: Option<&str> = None;
        let (mut paragraph, mut config) = (String::new(), String::new());
        // The empty line ends the last paragraph.
        for (index, line) in self.text.lines().chain([""]).enumerate() {
            let block = |commands: Vec<String>, config: &str| Block {
                page: self.path.clone(),
                line: index + 1,
                commands,
                config: config.to_owned(),
            };
            if let Some(language) = line.trim_start().strip_prefix("```") {
                fence = if fence.is_some() { None } else { Some(language.trim()) };
                match fence {
                    Some("sh") => blocks.push(block(Vec::new(), &config)),
                    Some("toml") => config.clear(),
                    _ => {}
                }
            } else if let Some(language) = fence {
                let command = line.trim();
                if language == "sh" && !command.is_empty() && !command.starts_with('#') {
                    blocks.last_mut().unwrap().commands.push(command.to_owned());
                }
                if language == "toml" {
                    config += &format!("{line}\n");
                }
                let is_hidden =
                    !["sh", "console"].contains(&language) && command.starts_with("mcp-delegator ");
                assert!(!is_hidden, "{}:{}: put commands into a `sh` block", self.path, index + 1);
            } else if line.trim().is_empty() {
                blocks.extend(code_spans(&paragraph).map(|command| block(vec![command], &config)));
                paragraph.clear();
            } else {
                paragraph.push_str(line);
                paragraph.push(' ');
            }
        }
        assert!(fence.is_none(), "{}: a code block is not closed", self.path);
        blocks
    }
}

/// Commands of this program in a paragraph. A span may continue on the next line.
fn code_spans(paragraph: &str) -> impl Iterator<Item = String> {
    let spans = paragraph.split('`').skip(1).step_by(2).filter(|span| span.starts_with("mcp-delegator "));
    spans.map(str::to_owned).collect::<Vec<_>>().into_iter()
}

#[test]
fn commands_of_blocks_and_code_spans_are_found() {
    let text = "Run `mcp-delegator\nversion`.\n\n```sh\n# first\nmcp-delegator doctor\n\nscripts/test\n```\n\n```\n$ x\n```\n";
    let page = Page { path: "page.md".to_owned(), text: text.to_owned() };
    let found: Vec<(String, Vec<String>)> =
        page.blocks().into_iter().map(|block| (block.location(), block.commands)).collect();
    let expected = [
        ("page.md:3".to_owned(), vec!["mcp-delegator version".to_owned()]),
        ("page.md:4".to_owned(), vec!["mcp-delegator doctor".to_owned(), "scripts/test".to_owned()]),
    ];
    assert_eq!(found, expected);
}

#[test]
#[should_panic(expected = "put commands into a `sh` block")]
fn a_command_outside_of_a_sh_block_is_refused() {
    let text = "```\nmcp-delegator doctor\n```\n";
    Page { path: "page.md".to_owned(), text: text.to_owned() }.blocks();
}
