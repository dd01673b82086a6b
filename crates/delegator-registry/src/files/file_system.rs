//! Recognises file systems on which locks, shared memory and rename cannot be trusted.
//!
//! A network file system may accept every call and still lose a lock, so it is refused by name. For FUSE the
//! mount table decides: `fuse.sshfs` is a network file system, `fuse-overlayfs` is a container's disk.

use std::io;
use std::path::Path;

/// Magic numbers (from `statfs`) of file systems shared between machines.
const SHARED: [(u64, &str); 17] = [
    (0x6969, "nfs"),
    (0x517B, "smb"),
    (0xFF53_4D42, "cifs"),
    (0xFE53_4D42, "smb2"),
    (0x0102_1997, "9p"),
    (0x5346_414F, "afs"),
    (0x6B41_4653, "afs"),
    (0x00C3_6400, "ceph"),
    (0x0BD0_0BD0, "lustre"),
    (0x7375_7245, "coda"),
    (0x564C, "ncp"),
    (0x0116_1970, "gfs2"),
    (0x7461_636F, "ocfs2"),
    (0x4750_4653, "gpfs"),
    (0x1983_0326, "beegfs"),
    (0xAAD7_AAEA, "panfs"),
    (0x786F_4256, "vboxsf"),
];

const FUSE: u64 = 0x6573_5546;

/// FUSE file systems that use a network, by the name after `fuse.`.
const SHARED_OVER_FUSE: &str = "sshfs rclone s3fs goofys gcsfuse blobfuse blobfuse2 mountpoint-s3 glusterfs ceph-fuse \
     ceph curlftpfs davfs davfs2 juicefs mfs lizardfs seaweedfs smbnetfs gvfsd-fuse";

pub(crate) fn shared_file_system_name(magic: u64, mounted_as: Option<&str>) -> Option<String> {
    if let Some((_, name)) = SHARED.iter().find(|(known, _)| *known == magic) {
        return Some((*name).to_owned());
    }
    let mounted_as = mounted_as.filter(|_| magic == FUSE)?;
    let kind = mounted_as.strip_prefix("fuse.")?;
    SHARED_OVER_FUSE.split(' ').any(|shared| shared == kind).then(|| mounted_as.to_owned())
}

/// The name of the network file system that contains `path`; `None` if it is local.
pub(crate) fn network_file_system_at(path: &Path) -> io::Result<Option<String>> {
    let magic = magic_of(path)?;
    let mounted_as = if magic == FUSE { mounted_as(path)? } else { None };
    Ok(shared_file_system_name(magic, mounted_as.as_deref()))
}

fn magic_of(path: &Path) -> io::Result<u64> {
    // The kernel gives 32 bits; some architectures sign-extend them.
    Ok(rustix::fs::statfs(path)?.f_type as u64 & 0xFFFF_FFFF)
}

fn mounted_as(path: &Path) -> io::Result<Option<String>> {
    use std::os::unix::fs::MetadataExt;
    let device = std::fs::metadata(path)?.dev();
    let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    Ok(type_in_mount_table(&std::fs::read_to_string("/proc/self/mountinfo")?, &device))
}

fn type_in_mount_table(table: &str, device: &str) -> Option<String> {
    let line = table.lines().find(|line| line.split(' ').nth(2) == Some(device))?;
    let (_, after) = line.split_once(" - ")?;
    after.split(' ').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_recognised_by_magic_number() {
        for (magic, name) in
            [(0x6969, "nfs"), (0xFF53_4D42, "cifs"), (0x0102_1997, "9p"), (0x00C3_6400, "ceph")]
        {
            assert_eq!(shared_file_system_name(magic, None).as_deref(), Some(name));
        }
        let (ext4, tmpfs, btrfs, overlay) = (0xEF53, 0x0102_1994, 0x9123_683E, 0x794C_7630);
        for local in [ext4, tmpfs, btrfs, overlay] {
            assert_eq!(shared_file_system_name(local, Some("fuse.sshfs")), None, "{local:x}");
        }
    }

    #[test]
    fn fuse_is_classified_by_its_mount_type() {
        assert_eq!(shared_file_system_name(FUSE, Some("fuse.sshfs")).as_deref(), Some("fuse.sshfs"));
        for local in [Some("fuse.fuse-overlayfs"), Some("fuse.gocryptfs"), Some("virtiofs"), None] {
            assert_eq!(shared_file_system_name(FUSE, local), None, "{local:?}");
        }
    }

    #[test]
    fn the_mount_table_is_read_by_device() {
        let table = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
                     90 22 0:51 / /home/me/far rw,nosuid master:3 - fuse.sshfs me@far: rw,user_id=0\n";
        assert_eq!(type_in_mount_table(table, "0:51").as_deref(), Some("fuse.sshfs"));
        assert_eq!(type_in_mount_table(table, "254:0").as_deref(), Some("ext4"));
        assert_eq!(type_in_mount_table(table, "0:5"), None);
    }

    #[test]
    fn a_temporary_directory_is_local() {
        assert_eq!(network_file_system_at(tempfile::tempdir().unwrap().path()).unwrap(), None);
    }
}
