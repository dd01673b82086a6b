//! What is stored of arbitrary streams, in arbitrary chunks.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;

use proptest::prelude::*;

use super::*;
use crate::run::ports::CancelRequest;

/// Stores parts in a directory and tracks which exist.
struct DirPorts {
    folder: tempfile::TempDir,
    open_parts: RefCell<BTreeMap<u32, ()>>,
}

impl DirPorts {
    fn new() -> DirPorts {
        DirPorts { folder: tempfile::tempdir().unwrap(), open_parts: RefCell::default() }
    }

    fn stored_bytes(&self) -> Vec<u8> {
        std::fs::read(self.folder.path().join("0")).unwrap()
    }

    fn bytes_on_disk(&self) -> u64 {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
    }
}

impl Ports for DirPorts {
    fn now_ms(&self) -> i64 {
        0
    }

    fn create(&self, _: Stream, part: u32) -> io::Result<File> {
        self.open_parts.borrow_mut().insert(part, ());
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(true);
        options.open(self.folder.path().join(part.to_string()))
    }

    fn remove(&self, _: Stream, part: u32) -> io::Result<()> {
        self.open_parts.borrow_mut().remove(&part);
        std::fs::remove_file(self.folder.path().join(part.to_string()))
    }

    fn cancel_requested(&self) -> Option<CancelRequest> {
        None
    }
}

fn store_all(max_bytes: u64, pieces: &[&[u8]]) -> (Vec<u8>, StreamSummary) {
    let ports = DirPorts::new();
    let mut store = StreamStore::open(&ports, Stream::Events, max_bytes);
    for piece in pieces {
        store.append(piece);
        assert!(ports.bytes_on_disk() <= max_bytes.max(8192), "{} of {max_bytes}", ports.bytes_on_disk());
    }
    store.finish();
    assert_eq!(ports.open_parts.borrow().len(), 1, "only part 0 stays");
    let summary = store.summary(pieces.iter().map(|piece| piece.len() as u64).sum());
    assert_eq!(summary.problem, None);
    (ports.stored_bytes(), summary)
}

#[test]
fn streams_within_the_limit_are_stored_unchanged() {
    let (text, summary) = store_all(1 << 20, &[b"{\"a\":1}\n{\"b", b"\":2}\n", b"no end"]);
    assert_eq!(text, b"{\"a\":1}\n{\"b\":2}\nno end");
    assert!(!summary.truncated);
}

#[test]
fn oversized_streams_keep_beginning_and_end() {
    let lines: Vec<String> = (0..5000).map(|number| format!("{{\"n\":{number}}}\n")).collect();
    let all = lines.concat();
    for size in [7, 100, 5000, all.len()] {
        let pieces: Vec<&[u8]> = all.as_bytes().chunks(size).collect();
        let (text, summary) = store_all(16 << 10, &pieces);
        let text = String::from_utf8(text).unwrap();
        assert!(summary.truncated && summary.stored == text.len() as u64 && text.len() <= 16 << 10);
        assert!(text.starts_with(&lines[0]) && text.ends_with(lines.last().unwrap()));
        let mut numbers = Vec::new();
        let mut omitted = 0;
        for line in text.lines() {
            let line: serde_json::Value = serde_json::from_str(line).expect("no line is torn");
            match line["bytes"].as_u64() {
                Some(bytes) => omitted = bytes,
                None => numbers.push(line["n"].as_u64().unwrap()),
            }
        }
        assert!(numbers.is_sorted() && numbers.len() > 800);
        let stored: u64 = numbers.iter().map(|number| lines[*number as usize].len() as u64).sum();
        assert_eq!(stored + omitted, all.len() as u64);
    }
}

#[test]
fn oversized_lines_keep_head_and_tail() {
    let long = format!("{{\"text\":\"{}\",\"status\":\"failed\"}}\n", "x".repeat(30_000));
    let all = format!("{{\"n\":1}}\n{long}{{\"n\":2}}\n");
    for size in [1, 1000, 20_000, all.len()] {
        let pieces: Vec<&[u8]> = all.as_bytes().chunks(size).collect();
        let (text, summary) = store_all(16 << 10, &pieces);
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[2]), (3, "{\"n\":1}", "{\"n\":2}"), "by {size}");
        let truncated: serde_json::Value = serde_json::from_str(lines[1]).expect("still JSON");
        assert_eq!(truncated["status"], "failed");
        assert!(truncated["text"].as_str().unwrap().contains(" bytes omitted] "));
        assert!(summary.truncated);
    }
}

#[test]
fn disk_errors_are_recorded_and_do_not_stop_the_store() {
    struct FullDisk;
    impl Ports for FullDisk {
        fn now_ms(&self) -> i64 {
            0
        }

        fn create(&self, _: Stream, part: u32) -> io::Result<File> {
            if part == 0 { File::options().read(true).write(true).open("/dev/full") } else { unreachable!() }
        }
        fn remove(&self, _: Stream, _: u32) -> io::Result<()> {
            Ok(())
        }
        fn cancel_requested(&self) -> Option<CancelRequest> {
            None
        }
    }
    let mut store = StreamStore::open(&FullDisk, Stream::Stderr, 1 << 20);
    store.append(b"a line\n");
    store.append(b"another\n");
    store.finish();
    let summary = store.summary(15);
    assert!(summary.truncated && summary.stored == 0);
    assert!(summary.problem.unwrap().contains("space"), "the reason is reported");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn truncated_json_lines_remain_json(
        text in "([a-zäß😀\\\\\"\u{2028}\n\t\u{1}]|[😀]{1,3}){1500,2500}", size in 1_usize..3000, ascii: bool,
    ) {
        let mut line = serde_json::to_string(&serde_json::json!({ "text": text, "end": 1 })).unwrap();
        if ascii {
            // As written by agents that escape all non-ASCII characters.
            let mut units = [0; 2];
            line = line.chars().map(|char| match char.is_ascii() {
                true => char.to_string(),
                false => char.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
            }).collect();
        }
        line.push('\n');
        let pieces: Vec<&[u8]> = line.as_bytes().chunks(size).collect();
        let (stored, _) = store_all(8 << 10, &pieces);
        let stored = String::from_utf8(stored).expect("UTF-8");
        let value: serde_json::Value = serde_json::from_str(&stored).expect("JSON");
        prop_assert_eq!(value["end"].as_u64(), Some(1));
    }
}
