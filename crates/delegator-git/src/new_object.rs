//! Objects that this process creates, and packs of them.
//!
//! A restore point needs a few small objects besides the files. Writing them here takes no git process. Nothing is
//! compressed: a zlib stream may consist of stored blocks. Formats: `git help format-pack`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use sha1::{Digest, Sha1};
use sha2::Sha256;

use crate::index_file::{hex, parse_hex};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Commit,
    Tree,
    Blob,
}

impl ObjectKind {
    fn name(self) -> &'static str {
        match self {
            ObjectKind::Commit => "commit",
            ObjectKind::Tree => "tree",
            ObjectKind::Blob => "blob",
        }
    }

    /// Its number in a pack.
    fn number(self) -> u8 {
        match self {
            ObjectKind::Commit => 1,
            ObjectKind::Tree => 2,
            ObjectKind::Blob => 3,
        }
    }
}

/// The hash of the parts, of the given length.
fn hash(parts: &[&[u8]], id_bytes: usize) -> Vec<u8> {
    fn of<D: Digest>(parts: &[&[u8]]) -> Vec<u8> {
        let hashed = parts.iter().fold(D::new(), |hash, part| hash.chain_update(part));
        hashed.finalize().to_vec()
    }
    if id_bytes == 32 { of::<Sha256>(parts) } else { of::<Sha1>(parts) }
}

fn object_id(kind: ObjectKind, content: &[u8], id_bytes: usize) -> Vec<u8> {
    hash(&[object_header(kind, content).as_bytes(), content], id_bytes)
}

fn object_header(kind: ObjectKind, content: &[u8]) -> String {
    format!("{} {}\0", kind.name(), content.len())
}

/// The object id of a blob, of the given length.
pub(crate) fn blob_id(content: &[u8], id_bytes: usize) -> Vec<u8> {
    object_id(ObjectKind::Blob, content, id_bytes)
}

/// New objects by id.
#[derive(Debug)]
pub(crate) struct NewObjects {
    id_bytes: usize,
    objects: BTreeMap<Vec<u8>, (ObjectKind, Vec<u8>)>,
}

/// A complete pack and its index.
#[derive(Debug)]
pub(crate) struct NewPack {
    pub(crate) hash: String,
    pub(crate) pack: Vec<u8>,
    pub(crate) index: Vec<u8>,
}

impl NewObjects {
    pub(crate) fn new(id_bytes: usize) -> NewObjects {
        NewObjects { id_bytes, objects: BTreeMap::new() }
    }

    /// Adds an object and returns its id.
    pub(crate) fn add(&mut self, kind: ObjectKind, content: Vec<u8>) -> String {
        let id = object_id(kind, &content, self.id_bytes);
        let text = hex(&id);
        self.objects.insert(id, (kind, content));
        text
    }

    /// Adds a tree of entries with mode, name and id. The names are sorted, and no name is the start of another.
    pub(crate) fn add_tree(&mut self, entries: &[(&str, &str, &str)]) -> Option<String> {
        let mut content = Vec::new();
        for (mode, name, id) in entries {
            content.extend_from_slice(format!("{mode} {name}\0").as_bytes());
            content.extend(parse_hex(id)?);
        }
        Some(self.add(ObjectKind::Tree, content))
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = String> {
        self.objects.keys().map(|id| hex(id))
    }

    /// The size of all objects.
    pub(crate) fn bytes(&self) -> usize {
        self.objects.values().map(|(_, content)| content.len()).sum()
    }

    /// Writes every object as a file of its own, for git to pack.
    pub(crate) fn write_loose(&self, objects: &Path) -> io::Result<()> {
        for (id, (kind, content)) in &self.objects {
            let id = hex(id);
            let folder = objects.join(&id[..2]);
            fs::create_dir_all(&folder)?;
            let bytes = [object_header(*kind, content).as_bytes(), content].concat();
            fs::write(folder.join(&id[2..]), stored_zlib(&bytes))?;
        }
        Ok(())
    }

    /// Packs all objects.
    pub(crate) fn pack(&self) -> NewPack {
        let count = u32::try_from(self.objects.len()).unwrap_or(u32::MAX).to_be_bytes();
        let mut pack = [b"PACK".as_slice(), &2_u32.to_be_bytes(), &count].concat();
        let (mut checksums, mut offsets) = (Vec::new(), Vec::new());
        for (kind, content) in self.objects.values() {
            let entry = [entry_header(*kind, content.len()), stored_zlib(content)].concat();
            checksums.extend(crc32(&entry).to_be_bytes());
            offsets.extend(u32::try_from(pack.len()).unwrap_or(u32::MAX).to_be_bytes());
            pack.extend(entry);
        }
        let pack_hash = hash(&[&pack], self.id_bytes);
        pack.extend(&pack_hash);
        let mut index = b"\xfftOc\0\0\0\x02".to_vec();
        for first in 0..=u8::MAX {
            let up_to = self.objects.keys().filter(|id| id[0] <= first).count();
            index.extend(u32::try_from(up_to).unwrap_or(u32::MAX).to_be_bytes());
        }
        index.extend(self.objects.keys().flatten());
        index.extend(checksums);
        index.extend(offsets);
        index.extend(&pack_hash);
        index.extend(hash(&[&index], self.id_bytes));
        NewPack { hash: hex(&pack_hash), pack, index }
    }
}

/// Kind and size: four bits of the size, then seven per byte, the lowest first.
fn entry_header(kind: ObjectKind, size: usize) -> Vec<u8> {
    let low_byte = |value: usize| value.to_le_bytes()[0];
    let mut header = vec![(kind.number() << 4) | low_byte(size & 0x0f)];
    let mut rest = size >> 4;
    while rest > 0 {
        if let Some(last) = header.last_mut() {
            *last |= 0x80;
        }
        header.push(low_byte(rest & 0x7f));
        rest >>= 7;
    }
    header
}

/// A zlib stream of stored blocks.
fn stored_zlib(content: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let mut rest = content;
    loop {
        let (block, after) = rest.split_at(rest.len().min(usize::from(u16::MAX)));
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        stream.push(u8::from(after.is_empty()));
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend_from_slice(block);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    stream.extend(adler32(content).to_be_bytes());
    stream
}

fn adler32(content: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in content {
        low = (low + u32::from(*byte)) % MODULUS;
        high = (high + low) % MODULUS;
    }
    (high << 16) | low
}

fn crc32(content: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in content {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_checksums_and_ids() {
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(hex(&blob_id(b"", 20)), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(entry_header(ObjectKind::Blob, 5), [0x35]);
        assert_eq!(entry_header(ObjectKind::Commit, 0x1234), [0x94, 0xa3, 0x02]);
    }

    #[test]
    fn long_content_is_stored_in_blocks() {
        let content = vec![7; 70_000];
        let stream = stored_zlib(&content);
        assert_eq!(stream[..7], [0x78, 0x01, 0, 0xff, 0xff, 0, 0]);
        assert_eq!(stream[7 + 65_535..][..5], [1, 0x71, 0x11, 0x8e, 0xee]);
        assert_eq!(stream.len(), 2 + 5 + 5 + 70_000 + 4);
        assert_eq!(stored_zlib(b"").len(), 2 + 5 + 4);
    }
}
