//! Work that one of many has to do now and then: whoever takes the turn does it.

use delegator_domain::crash::{CrashPoint, crash_point};
use rusqlite::{Connection, OptionalExtension};

use crate::error::RegistryError;
use crate::registry::Registry;

impl Registry {
    /// Whether it is this caller's turn: nobody has taken it in the last `every_ms`. A turn that seems to lie in the
    /// future was taken by a clock that has been set back since.
    pub fn claim_periodic_job(
        &mut self,
        name: &str,
        every_ms: i64,
        now_ms: i64,
    ) -> Result<bool, RegistryError> {
        let key = format!("turn_{name}");
        let is_due = |db: &Connection| -> rusqlite::Result<bool> {
            let sql = "SELECT value FROM meta WHERE key = ?1";
            let last: Option<i64> = db.query_row(sql, [&key], |row| row.get(0)).optional()?;
            Ok(last.is_none_or(|last| !(0..every_ms).contains(&(now_ms - last))))
        };
        if !self.read(is_due)? {
            return Ok(false);
        }
        let claimed = self.write(|db| {
            let claimed = is_due(db)?;
            if claimed {
                let sql = "INSERT INTO meta (key, value) VALUES (?1, ?2) \
                           ON CONFLICT (key) DO UPDATE SET value = excluded.value";
                db.execute(sql, (&key, now_ms))?;
            }
            Ok(claimed)
        })?;
        crash_point(CrashPoint::RetentionTurnTaken);
        Ok(claimed)
    }
}
