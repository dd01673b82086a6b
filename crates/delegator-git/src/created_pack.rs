//! The pack that `git fast-import` has just written in our scratch directory.
//!
//! If it holds every object of a restore point, it is stored as it is, and no other pack has to be written.

use std::fs;
use std::path::PathBuf;

use crate::index_file::parse_hex;
use crate::scratch::Scratch;

/// The start of a pack index of version 2.
const INDEX_START: &[u8] = b"\xfftOc\0\0\0\x02";
const FAN_OUT_BYTES: usize = 256 * 4;

#[derive(Debug)]
pub(crate) struct CreatedPack {
    pub(crate) hash: String,
    pub(crate) pack: Vec<u8>,
    pub(crate) index: Vec<u8>,
}

impl CreatedPack {
    /// `None` if there is not exactly one pack, or if it does not have all objects: git does not write an object again that
    /// the repository has already.
    pub(crate) fn find(scratch: &Scratch, objects: &[String]) -> Option<CreatedPack> {
        let entries = fs::read_dir(scratch.path("objects/pack")).ok()?;
        let paths: Vec<PathBuf> =
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().ok()?;
        let mut packs = paths.iter().filter(|path| path.extension().is_some_and(|ending| ending == "pack"));
        let (path, None) = (packs.next()?, packs.next()) else { return None };
        let hash = path.file_stem()?.to_str()?.strip_prefix("pack-")?.to_owned();
        let index = fs::read(path.with_extension("idx")).ok()?;
        let has_all = contains_all(&index, objects, scratch.id_bytes())?;
        has_all.then_some(())?;
        Some(CreatedPack { hash, pack: fs::read(path).ok()?, index })
    }
}

/// Whether the pack index lists all objects; `None` if it has another format.
fn contains_all(index: &[u8], objects: &[String], id_bytes: usize) -> Option<bool> {
    let (fan_out, rest) = index.strip_prefix(INDEX_START)?.split_at_checked(FAN_OUT_BYTES)?;
    let count = u32::from_be_bytes(fan_out.last_chunk::<4>().copied()?);
    let ids = rest.get(..usize::try_from(count).ok()?.checked_mul(id_bytes)?)?;
    let ids: Vec<&[u8]> = ids.chunks_exact(id_bytes).collect();
    let is_listed = |id: &String| parse_hex(id).is_some_and(|id| ids.binary_search(&id.as_slice()).is_ok());
    Some(objects.iter().all(is_listed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_objects_are_found() {
        let (first, second) = ([1; 20], [2; 20]);
        let fan_out = [[0, 0, 0, 2]; 256].concat();
        let index = [INDEX_START, &fan_out, &first, &second, &[9; 60]].concat();
        let (first, second, third) = ("01".repeat(20), "02".repeat(20), "09".repeat(20));
        assert_eq!(contains_all(&index, &[first.clone(), second], 20), Some(true));
        assert_eq!(contains_all(&index, &[first.clone(), third], 20), Some(false));
        assert_eq!(contains_all(&index[..1_040], &[first], 20), None, "it is truncated");
    }
}
