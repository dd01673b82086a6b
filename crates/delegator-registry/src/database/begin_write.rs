//! Begins a writing transaction, and waits for SQLite's write lock.
//!
//! SQLite's own handler sleeps up to 100 ms per try, and the lock goes to a process that happens to be awake:
//! with twenty writers, one in a hundred waited 130 ms and the slowest 0.8 s for a transaction of half a
//! millisecond. Short sleeps give every writer a fair chance. The handler gives up after [`MAX_TRIES`].
//!
//! That is right if one process holds the lock all that time. With many writers on a slow disk it is not: the
//! lock goes to whichever of them tries first, so a writer can miss it often. As long as others commit, this
//! one tries again.

#![expect(clippy::disallowed_methods, reason = "SQLite has no way to wait for its lock, only to retry")]

use std::time::Duration;

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

/// Each round waits about five seconds; all together one minute.
const MAX_ROUNDS: u32 = 12;

/// Takes the write lock. Fails as busy if nothing was committed while the busy handler waited, or after
/// [`MAX_ROUNDS`].
pub(crate) fn begin_write(db: &Connection) -> rusqlite::Result<Transaction<'_>> {
    let begin = || Transaction::new_unchecked(db, TransactionBehavior::Immediate);
    for _ in 1..MAX_ROUNDS {
        let before = data_version(db)?;
        match begin() {
            Err(error) if is_busy(&error) && data_version(db)? != before => {}
            other => return other,
        }
    }
    begin()
}

/// Differs from the value before if another connection has committed in between.
pub(crate) fn data_version(db: &Connection) -> rusqlite::Result<i64> {
    db.prepare_cached("PRAGMA data_version")?.query_row((), |row| row.get(0))
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// About five seconds of sleep. Tries are counted, not time: a process that was stopped for a minute has not
/// yet tried.
const MAX_TRIES: i32 = 574;

/// The callback that SQLite calls while the lock is held: sleeps, or returns false to give up.
pub(crate) fn busy_handler(tries: i32) -> bool {
    if tries >= MAX_TRIES {
        return false;
    }
    std::thread::sleep(delay(tries));
    true
}

fn delay(tries: i32) -> Duration {
    Duration::from_millis(match tries {
        0..20 => 1,
        20..100 => 3,
        _ => 10,
    })
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    thread_local! {
        /// Holds the write lock.
        static HOLDER: RefCell<Option<Connection>> = const { RefCell::new(None) };
        /// How often the holder will commit and take the lock again at once.
        static COMMITS: Cell<u32> = const { Cell::new(0) };
        static ROUNDS: Cell<u32> = const { Cell::new(0) };
    }

    const HOLD: &str = "BEGIN IMMEDIATE; INSERT INTO numbers VALUES (1)";

    /// Gives up at once, after the holder has made progress or not.
    fn give_up(_tries: i32) -> bool {
        ROUNDS.set(ROUNDS.get() + 1);
        if COMMITS.get() > 0 {
            COMMITS.set(COMMITS.get() - 1);
            HOLDER.with_borrow(|holder| {
                let holder = holder.as_ref().unwrap();
                holder.execute_batch("COMMIT").unwrap();
                if COMMITS.get() > 0 {
                    holder.execute_batch(HOLD).unwrap();
                }
            });
        }
        false
    }

    /// Begins to write beside a holder that commits this often; returns whether that worked, and the number
    /// of rounds.
    fn begin_beside_holder(commits: u32) -> (bool, u32) {
        let folder = tempfile::tempdir().unwrap();
        let open = || Connection::open(folder.path().join("test.db")).unwrap();
        let holder = open();
        holder
            .execute_batch(&format!("PRAGMA journal_mode = WAL; CREATE TABLE numbers (number); {HOLD}"))
            .unwrap();
        HOLDER.set(Some(holder));
        COMMITS.set(commits);
        ROUNDS.set(0);
        let writer = open();
        writer.busy_handler(Some(give_up)).unwrap();
        let began = match begin_write(&writer) {
            Ok(_) => true,
            Err(error) if is_busy(&error) => false,
            Err(error) => panic!("{error}"),
        };
        (began, ROUNDS.get())
    }

    #[test]
    fn a_writer_waits_as_long_as_others_commit() {
        assert_eq!(begin_beside_holder(4), (true, 4));
    }

    #[test]
    fn a_lock_that_one_process_holds_all_the_time_is_reported_at_once() {
        assert_eq!(begin_beside_holder(0), (false, 1));
    }

    #[test]
    fn a_writer_gives_up_at_last() {
        assert_eq!(begin_beside_holder(u32::MAX), (false, MAX_ROUNDS));
    }

    #[test]
    fn the_delay_grows_from_one_to_ten_milliseconds() {
        let delays: Vec<_> = (0..200).map(delay).collect();
        assert!(delays.is_sorted());
        assert_eq!((delays[0].as_millis(), delays[199].as_millis()), (1, 10));
    }

    #[test]
    fn a_writer_waits_five_seconds_in_total() {
        let total: Duration = (0..MAX_TRIES).map(delay).sum();
        assert_eq!(total, Duration::from_secs(5));
    }
}
