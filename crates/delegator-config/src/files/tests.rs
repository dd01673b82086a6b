//! What may be read as a configuration file.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;

use super::{is_missing, read_text};

fn fault(path: &Path) -> String {
    read_text(path).unwrap_err().to_string()
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_text() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("f");
    fs::write(&path, "\u{feff}a = 1").unwrap();
    assert_eq!(read_text(&path).unwrap(), "a = 1");
}

#[test]
fn whatever_is_no_readable_text_is_told_apart() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("f");
    assert!(is_missing(&path) && is_missing(&path.join("below")));
    assert_eq!(fault(&path), "the file does not exist");
    assert_eq!(fault(temp.path()), "this is a directory, not a file");
    assert!(!is_missing(temp.path()));

    fs::write(&path, b"a = \"\xff\"").unwrap();
    assert_eq!(fault(&path), "the file is not UTF-8 text: byte 6 begins no character");
    assert_eq!(fault(&path.join("below")), "the file does not exist");

    fs::write(&path, vec![b'#'; 1 << 20]).unwrap();
    assert!(read_text(&path).is_ok(), "1 MiB is not more than 1 MiB");
    fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert_eq!(fault(&path), "the file is larger than 1 MiB");
}

#[test]
fn only_regular_files_are_opened() {
    let temp = tempfile::tempdir().unwrap();
    let socket = temp.path().join("s");
    let _listener = UnixListener::bind(&socket).unwrap();
    assert_eq!(fault(&socket), "this is not a regular file");
    assert_eq!(fault(Path::new("/dev/zero")), "this is not a regular file");
}
