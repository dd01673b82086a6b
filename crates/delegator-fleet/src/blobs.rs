//! Files of an attempt, stored in parts and sealed when they are complete.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use crate::claim::Claim;
use crate::database::Database;
use crate::error::FleetError;
use crate::events::{lock_attempt, signed};

const PART_BYTES: usize = 512 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlobName {
    /// The unified diff of the changes.
    Diff,
    /// The output of the setup script.
    Setup,
}

impl BlobName {
    pub(crate) fn name(self) -> &'static str {
        match self {
            BlobName::Diff => "diff",
            BlobName::Setup => "setup",
        }
    }
}

impl Database {
    /// Stores a file, one transaction for each part. A repetition continues an interrupted call.
    pub fn put_blob(&self, claim: &Claim, name: BlobName, bytes: &[u8]) -> Result<(), FleetError> {
        let sha256 = Sha256::digest(bytes).to_vec();
        let mut stored = self.begin_blob(claim, name, bytes.len() as u64, &sha256)?;
        for (part, bytes) in (0_i32..).zip(bytes.chunks(PART_BYTES)) {
            if stored.remove(&part) {
                continue;
            }
            self.transaction(async |db| {
                lock_attempt(db, claim).await?;
                sqlx::query!(
                    "insert into delegator.blob_parts (task, attempt, name, part, bytes) values ($1, $2, $3, $4, $5)
                     on conflict do nothing",
                    claim.task,
                    claim.attempt,
                    name.name(),
                    part,
                    bytes,
                )
                .execute(&mut *db)
                .await?;
                Ok(())
            })?;
        }
        self.transaction(async |db| {
            lock_attempt(db, claim).await?;
            sqlx::query!(
                "update delegator.blobs set is_sealed = true where task = $1 and attempt = $2 and name = $3",
                claim.task,
                claim.attempt,
                name.name(),
            )
            .execute(&mut *db)
            .await?;
            Ok(())
        })
    }

    /// Replaces a file with other content. Returns the parts that are already stored.
    fn begin_blob(
        &self,
        claim: &Claim,
        name: BlobName,
        size: u64,
        sha256: &[u8],
    ) -> Result<BTreeSet<i32>, FleetError> {
        self.transaction(async |db| {
            lock_attempt(db, claim).await?;
            sqlx::query!(
                "delete from delegator.blobs where task = $1 and attempt = $2 and name = $3 and sha256 <> $4",
                claim.task,
                claim.attempt,
                name.name(),
                sha256,
            )
            .execute(&mut *db)
            .await?;
            sqlx::query!(
                "insert into delegator.blobs (task, attempt, name, size, sha256) values ($1, $2, $3, $4, $5)
                 on conflict do nothing",
                claim.task,
                claim.attempt,
                name.name(),
                signed(size),
                sha256,
            )
            .execute(&mut *db)
            .await?;
            let parts = sqlx::query_scalar!(
                "select part from delegator.blob_parts where task = $1 and attempt = $2 and name = $3",
                claim.task,
                claim.attempt,
                name.name(),
            )
            .fetch_all(&mut *db)
            .await?;
            Ok(parts.into_iter().collect())
        })
    }

    /// A file of the last attempt; `None` if there is none, or if it is not complete.
    pub fn blob(&self, id: &str, name: BlobName) -> Result<Option<Vec<u8>>, FleetError> {
        let blob = self.transaction(async |db| {
            Ok(sqlx::query!(
                "select b.attempt, b.sha256 from delegator.blobs b
                 join delegator.tasks t on t.id = b.task and t.attempt = b.attempt
                 where b.task = $1 and b.name = $2 and b.is_sealed",
                id,
                name.name(),
            )
            .fetch_optional(&mut *db)
            .await?)
        })?;
        let Some(blob) = blob else { return Ok(None) };
        let mut bytes = Vec::new();
        for part in 0_i32.. {
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
            match read {
                Some(part) => bytes.extend(part),
                None => break,
            }
        }
        if Sha256::digest(&bytes).as_slice() != blob.sha256 {
            return Err(FleetError::Corrupt {
                what: name.name(),
                problem: "its checksum differs".to_owned(),
            });
        }
        Ok(Some(bytes))
    }
}
