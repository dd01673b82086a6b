//! What is stored, whatever comes in whatever pieces.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;

use proptest::prelude::*;

use super::*;
use crate::run::ports::CancelRequest;

/// Files in a directory, and how many there ever were at once.
struct Disk {
    folder: tempfile::TempDir,
    sizes: RefCell<BTreeMap<u32, ()>>,
}

impl Disk {
    fn new() -> Disk {
        Disk { folder: tempfile::tempdir().unwrap(), sizes: RefCell::default() }
    }

    fn text(&self) -> Vec<u8> {
        std::fs::read(self.folder.path().join("0")).unwrap()
    }

    fn on_disk(&self) -> u64 {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
    }
}

impl Ports for Disk {
    fn create(&self, _: Stream, part: u32) -> io::Result<File> {
        self.sizes.borrow_mut().insert(part, ());
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(true);
        options.open(self.folder.path().join(part.to_string()))
    }

    fn remove(&self, _: Stream, part: u32) -> io::Result<()> {
        self.sizes.borrow_mut().remove(&part);
        std::fs::remove_file(self.folder.path().join(part.to_string()))
    }

    fn cancel_requested(&self) -> Option<CancelRequest> {
        None
    }
}

fn store_all(most: u64, pieces: &[&[u8]]) -> (Vec<u8>, StreamSummary) {
    let disk = Disk::new();
    let mut store = Store::open(&disk, Stream::Events, most);
    for piece in pieces {
        store.append(piece);
        assert!(disk.on_disk() <= most.max(8192), "{} of {most}", disk.on_disk());
    }
    store.finish();
    assert_eq!(disk.sizes.borrow().len(), 1, "only part 0 stays");
    let summary = store.summary(pieces.iter().map(|piece| piece.len() as u64).sum());
    assert_eq!(summary.problem, None);
    (disk.text(), summary)
}

#[test]
fn what_fits_is_kept_as_it_is() {
    let (text, summary) = store_all(1 << 20, &[b"{\"a\":1}\n{\"b", b"\":2}\n", b"no end"]);
    assert_eq!(text, b"{\"a\":1}\n{\"b\":2}\nno end");
    assert!(!summary.truncated);
}

#[test]
fn of_too_much_the_beginning_and_the_end_are_kept() {
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
        let kept: u64 = numbers.iter().map(|number| lines[*number as usize].len() as u64).sum();
        assert_eq!(kept + omitted, all.len() as u64);
    }
}

#[test]
fn a_line_that_is_too_long_keeps_its_head_and_tail() {
    let long = format!("{{\"text\":\"{}\",\"status\":\"failed\"}}\n", "x".repeat(30_000));
    let all = format!("{{\"n\":1}}\n{long}{{\"n\":2}}\n");
    for size in [1, 1000, 20_000, all.len()] {
        let pieces: Vec<&[u8]> = all.as_bytes().chunks(size).collect();
        let (text, summary) = store_all(16 << 10, &pieces);
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[2]), (3, "{\"n\":1}", "{\"n\":2}"), "by {size}");
        let cut: serde_json::Value = serde_json::from_str(lines[1]).expect("still JSON");
        assert_eq!(cut["status"], "failed");
        assert!(cut["text"].as_str().unwrap().contains(" bytes omitted] "));
        assert!(summary.truncated);
    }
}

#[test]
fn a_disk_that_fails_is_told_and_ends_nothing() {
    struct Full;
    impl Ports for Full {
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
    let mut store = Store::open(&Full, Stream::Stderr, 1 << 20);
    store.append(b"a line\n");
    store.append(b"another\n");
    store.finish();
    let summary = store.summary(15);
    assert!(summary.truncated && summary.stored == 0);
    assert!(summary.problem.unwrap().contains("space"), "the reason is told");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn cut_json_stays_json(
        text in "([a-zäß😀\\\\\"\u{2028}\n\t\u{1}]|[😀]{1,3}){1500,2500}", size in 1_usize..3000, ascii: bool,
    ) {
        let mut line = serde_json::to_string(&serde_json::json!({ "text": text, "end": 1 })).unwrap();
        if ascii {
            // As those write it who escape everything.
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
