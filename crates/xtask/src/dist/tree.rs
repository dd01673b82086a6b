//! Files of a package in memory, written so that equal contents give equal bytes.
//!
//! Order, owner, permissions and times do not depend on the machine; times are those of the release.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};

use flate2::{Compression, GzBuilder};
use zip::write::SimpleFileOptions;

use crate::error::LoadError;

#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_executable: bool,
}

impl File {
    fn mode(&self) -> u32 {
        if self.is_executable { 0o755 } else { 0o644 }
    }
}

/// Files by their paths.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, File>,
}

impl Tree {
    pub(crate) fn add(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.files.insert(path.into(), File { bytes: bytes.into(), is_executable: false });
    }

    pub(crate) fn add_program(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.files.insert(path.into(), File { bytes: bytes.into(), is_executable: true });
    }

    /// All files in a folder `root`, as a compressed tar file. The gzip header has neither a name nor a time.
    pub(crate) fn to_tar_gz(&self, root: &str, seconds: u64, level: u32) -> Result<Vec<u8>, LoadError> {
        let gzip = GzBuilder::new().operating_system(255).write(Vec::new(), Compression::new(level));
        let mut tar = tar::Builder::new(gzip);
        for (path, file) in &self.files {
            let mut header = tar::Header::new_ustar();
            header.set_size(file.bytes.len() as u64);
            header.set_mode(file.mode());
            header.set_mtime(seconds);
            header.set_uid(0);
            header.set_gid(0);
            let path = format!("{root}/{path}");
            tar.append_data(&mut header, path, file.bytes.as_slice())
                .map_err(LoadError::io("pack an archive"))?;
        }
        let gzip = tar.into_inner().map_err(LoadError::io("pack an archive"))?;
        gzip.finish().map_err(LoadError::io("compress an archive"))
    }

    /// All files as a zip file, with the oldest time that the format knows.
    pub(crate) fn to_zip(&self, level: u32) -> Result<Vec<u8>, LoadError> {
        let packing = |error: zip::result::ZipError| LoadError::io("pack a zip file")(error.into());
        let method =
            if level > 0 { zip::CompressionMethod::Deflated } else { zip::CompressionMethod::Stored };
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (path, file) in &self.files {
            let options = SimpleFileOptions::default()
                .last_modified_time(zip::DateTime::default())
                .compression_method(method)
                .compression_level((level > 0).then_some(level.into()))
                .unix_permissions(file.mode());
            zip.start_file(path.as_str(), options).map_err(packing)?;
            zip.write_all(&file.bytes).map_err(LoadError::io("pack a zip file"))?;
        }
        Ok(zip.finish().map_err(packing)?.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_files_give_equal_bytes_in_any_order() {
        let files = [("b", "2"), ("a/long/path", "1")];
        let tree = |files: &[(&str, &str)]| {
            let mut tree = Tree::default();
            files.iter().for_each(|(path, text)| tree.add(*path, *text));
            tree.add_program("bin/x", "3");
            tree
        };
        let (one, other) = (tree(&files), tree(&[files[1], files[0]]));
        assert_eq!(one.to_tar_gz("r", 7, 9).unwrap(), other.to_tar_gz("r", 7, 9).unwrap());
        assert_eq!(one.to_zip(9).unwrap(), other.to_zip(9).unwrap());
        let unpacked = flate2::read::GzDecoder::new(Cursor::new(one.to_tar_gz("r", 7, 9).unwrap()));
        let mut tar = tar::Archive::new(unpacked);
        let entries = tar.entries().unwrap().map(|entry| {
            let header = entry.unwrap().header().clone();
            (header.path().unwrap().display().to_string(), header.mode().unwrap(), header.mtime().unwrap())
        });
        let expected = [("r/a/long/path", 0o644), ("r/b", 0o644), ("r/bin/x", 0o755)]
            .map(|(path, mode)| (path.to_owned(), mode, 7));
        assert_eq!(entries.collect::<Vec<_>>(), expected);
    }
}
