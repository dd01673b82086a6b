//! Which files can be read as a configuration file.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;

use super::{is_missing, read_text};

fn read_error(path: &Path) -> String {
    read_text(path).unwrap_err().to_string()
}

#[test]
fn a_byte_order_mark_is_removed() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("f");
    fs::write(&path, "\u{feff}a = 1").unwrap();
    assert_eq!(read_text(&path).unwrap(), "a = 1");
}

#[test]
fn each_kind_of_unreadable_file_has_its_own_error() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("f");
    assert!(is_missing(&path) && is_missing(&path.join("below")));
    assert_eq!(read_error(&path), "the file does not exist");
    assert_eq!(read_error(temp.path()), "this is a directory, not a file");
    assert!(!is_missing(temp.path()));

    fs::write(&path, b"a = \"\xff\"").unwrap();
    assert_eq!(read_error(&path), "the file is not UTF-8 text: byte 6 is invalid");
    assert_eq!(read_error(&path.join("below")), "the file does not exist");

    fs::write(&path, vec![b'#'; 1 << 20]).unwrap();
    assert!(read_text(&path).is_ok(), "1 MiB is not more than 1 MiB");
    fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert_eq!(read_error(&path), "the file is larger than 1 MiB");
}

#[test]
fn only_regular_files_are_opened() {
    let temp = tempfile::tempdir().unwrap();
    let socket = temp.path().join("s");
    let _listener = UnixListener::bind(&socket).unwrap();
    assert_eq!(read_error(&socket), "this is not a regular file");
    assert_eq!(read_error(Path::new("/dev/zero")), "this is not a regular file");
}
