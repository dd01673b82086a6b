//! Files of an attempt, stored in parts and sealed when they are complete.

use std::collections::BTreeSet;

use delegator_domain::named_enum;
use sha2::{Digest, Sha256};

use crate::database::Database;
use crate::error::FleetError;
use crate::events::signed;
use crate::session::FleetClaim;

const PART_BYTES: usize = 512 * 1024;
/// More than a worker stores.
const MAX_BYTES: usize = 512 << 20;

named_enum! {
    pub enum BlobName {
        Diff = "diff",
        Setup = "setup",
    }
}

impl Database {
    /// Stores a file, one transaction for each part. A repetition continues an interrupted call.
    pub fn put_blob(&self, claim: &FleetClaim, name: BlobName, bytes: &[u8]) -> Result<(), FleetError> {
        let sha256 = Sha256::digest(bytes).to_vec();
        let mut stored = self.begin_blob(claim, name, bytes.len() as u64, &sha256)?;
        for (part, bytes) in (0_i32..).zip(bytes.chunks(PART_BYTES)) {
            if stored.remove(&part) {
                continue;
            }
            self.transaction(async |db| {
                let is_stored = sqlx::query_scalar!(
                    r#"select delegator.put_blob_part($1, $2, $3, $4, $5, $6) as "is_stored!""#,
                    claim.session.secret,
                    claim.task,
                    claim.attempt,
                    name.name(),
                    part,
                    bytes,
                );
                claim.require(is_stored.fetch_one(&mut *db).await?)
            })?;
        }
        self.transaction(async |db| {
            let is_sealed = sqlx::query_scalar!(
                r#"select delegator.seal_blob($1, $2, $3, $4) as "is_sealed!""#,
                claim.session.secret,
                claim.task,
                claim.attempt,
                name.name(),
            );
            claim.require(is_sealed.fetch_one(&mut *db).await?)
        })
    }

    /// Replaces a file with other content. Returns the parts that are already stored.
    fn begin_blob(
        &self,
        claim: &FleetClaim,
        name: BlobName,
        size: u64,
        sha256: &[u8],
    ) -> Result<BTreeSet<i32>, FleetError> {
        self.transaction(async |db| {
            let parts = sqlx::query_scalar!(
                "select delegator.begin_blob($1, $2, $3, $4, $5, $6)",
                claim.session.secret,
                claim.task,
                claim.attempt,
                name.name(),
                signed(size),
                sha256,
            )
            .fetch_one(&mut *db)
            .await?;
            Ok(parts.ok_or_else(|| claim.fenced())?.into_iter().collect())
        })
    }

    /// A file of the last attempt; `None` if there is none, or if it is not complete.
    pub fn blob(&self, id: &str, name: BlobName) -> Result<Option<Vec<u8>>, FleetError> {
        let blob = self.transaction(async |db| {
            Ok(sqlx::query!(
                r#"select b.attempt, b.size, b.sha256,
                    (select coalesce(sum(octet_length(p.bytes)), 0)::bigint from delegator.blob_parts p
                        where p.task = b.task and p.attempt = b.attempt and p.name = b.name) as "stored!"
                 from delegator.blobs b
                 join delegator.tasks t on t.id = b.task and t.attempt = b.attempt
                 where b.task = $1 and b.name = $2 and b.is_sealed"#,
                id,
                name.name(),
            )
            .fetch_optional(&mut *db)
            .await?)
        })?;
        let Some(blob) = blob else { return Ok(None) };
        let corrupt = |problem: String| FleetError::Corrupt { what: name.name(), problem };
        // Before anything is read: the parts may be much larger.
        let size =
            usize::try_from(blob.size).ok().filter(|size| blob.stored == blob.size && *size <= MAX_BYTES);
        let size = size.ok_or_else(|| {
            corrupt(format!("its parts have {} bytes, its size is {}", blob.stored, blob.size))
        })?;
        let mut bytes = Vec::new();
        let mut parts = 0_i32..;
        while bytes.len() < size
            && let Some(part) = parts.next()
        {
            let read = self.transaction(async |db| {
                Ok(sqlx::query_scalar!(
                    "select bytes from delegator.blob_parts
                     where task = $1 and attempt = $2 and name = $3 and part = $4",
                    id,
                    blob.attempt,
                    name.name(),
                    part,
                )
                .fetch_optional(&mut *db)
                .await?)
            })?;
            bytes.extend(read.ok_or_else(|| corrupt("a part of it is missing".to_owned()))?);
        }
        if Sha256::digest(&bytes).as_slice() != blob.sha256 {
            return Err(corrupt("its checksum differs".to_owned()));
        }
        Ok(Some(bytes))
    }
}
