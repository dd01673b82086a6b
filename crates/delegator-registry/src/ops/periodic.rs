//! Jobs that one of many processes runs at intervals: the process that claims the job runs it.

use delegator_domain::crash::{CrashPoint, crash_point};
use rusqlite::Connection;

use crate::database::schema::{meta, set_meta};
use crate::error::Result;
use crate::registry::Registry;

impl Registry {
    /// Claims the job if no process has claimed it within the last `every_ms`. A claim in the future was made
    /// before the clock was set back, and is ignored.
    pub fn claim_periodic_job(&mut self, name: &str, every_ms: i64, now_ms: i64) -> Result<bool> {
        let key = format!("turn_{name}");
        let is_due = |db: &Connection| -> rusqlite::Result<bool> {
            Ok(meta(db, &key)?.is_none_or(|last: i64| !(0..every_ms).contains(&(now_ms - last))))
        };
        if !self.read(is_due)? {
            return Ok(false);
        }
        self.write(|db| {
            let claimed = is_due(db)?;
            if claimed {
                set_meta(db, &key, now_ms)?;
            }
            Ok(claimed)
        })
        .inspect(|_| crash_point(CrashPoint::RetentionTurnTaken))
    }
}
