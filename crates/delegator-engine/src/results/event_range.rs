//! A range of the stored events of a task, by their place in the stream, without reading the whole stream.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;

use delegator_domain::task::TaskId;
use delegator_registry::{Task, TaskFile};

use crate::Results;
use crate::error::{EngineError, Result};

/// A line of the stream. The first one is 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    pub number: u64,
    /// Where it begins in the stream.
    pub begin: u64,
    pub line: Vec<u8>,
}

/// When the events of a task were written, to about a second.
#[derive(Debug, Default)]
pub struct EventTimes {
    started_ms: Option<i64>,
    /// From which place on the events are of which time.
    marks: Vec<(u64, i64)>,
}

impl EventTimes {
    fn parse(started_ms: Option<i64>, text: &str) -> EventTimes {
        let mark = |line: &str| {
            let (begin, ms) = line.split_once(' ')?;
            Some((begin.parse().ok()?, ms.parse().ok()?))
        };
        EventTimes { started_ms, marks: text.lines().filter_map(mark).collect() }
    }

    pub fn of(&self, event: &StoredEvent) -> Option<i64> {
        let next = self.marks.partition_point(|(begin, _)| *begin <= event.begin);
        next.checked_sub(1).map(|at| self.marks[at].1).or(self.started_ms)
    }
}

/// How far a reader has read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventPlace {
    pub lines: u64,
    bytes: u64,
    /// Device and inode.
    file: Option<(u64, u64)>,
}

#[derive(Debug, Default)]
pub struct EventRange {
    pub events: Vec<StoredEvent>,
    pub end: EventPlace,
    /// There are more complete lines after `end`.
    pub has_more: bool,
    /// Another attempt has begun a new stream, from which the events are.
    pub is_restarted: bool,
}

impl Results<'_> {
    /// Those of a task that ran elsewhere are not known.
    pub fn event_times(&self, task: &Task) -> Result<EventTimes> {
        if task.remote.is_some() {
            return Ok(EventTimes::default());
        }
        let text = self.read_stored(&task.id, TaskFile::EventTimes)?;
        Ok(EventTimes::parse(task.started_at_ms, &String::from_utf8_lossy(&text)))
    }

    /// Up to `limit` lines after `place`, without those up to number `skip`, and at most about
    /// `max_bytes` of them. The last line need not be complete if the task has ended.
    pub fn event_range(
        &self,
        id: &TaskId,
        place: EventPlace,
        skip: u64,
        limit: usize,
        max_bytes: usize,
    ) -> Result<EventRange> {
        let Some(dir) = self.task_dir(id)? else { return Ok(EventRange::default()) };
        // Before the file is read, so that everything that was written before the end is in it.
        let has_ended = self.recorded_task(id)?.state.is_terminal();
        let failed = EngineError::io("read the events of the task");
        match File::open(dir.file(TaskFile::Events)) {
            Ok(file) => read_range(file, place, skip, limit, max_bytes, has_ended).map_err(failed),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(EventRange { end: place, ..EventRange::default() })
            }
            Err(error) => Err(failed(error)),
        }
    }
}

fn read_range(
    mut file: File,
    place: EventPlace,
    skip: u64,
    limit: usize,
    max_bytes: usize,
    has_ended: bool,
) -> std::io::Result<EventRange> {
    let metadata = file.metadata()?;
    let identity = Some((metadata.dev(), metadata.ino()));
    let is_restarted = metadata.len() < place.bytes || (place.file.is_some() && place.file != identity);
    let known = if is_restarted { EventPlace::default() } else { place };
    let end = EventPlace { file: identity, ..known };
    let mut range = EventRange { end, is_restarted, ..EventRange::default() };
    file.seek(SeekFrom::Start(range.end.bytes))?;
    let mut reader = BufReader::with_capacity(64 << 10, file);
    let (mut size, mut line) = (0, Vec::new());
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        match line.pop_if(|last| *last == b'\n') {
            Some(_) => {}
            None if has_ended && !line.is_empty() => {}
            // The rest is still being written.
            None => return Ok(range),
        }
        if range.events.len() >= limit || (size > 0 && size + read > max_bytes) {
            return Ok(EventRange { has_more: true, ..range });
        }
        range.end.lines += 1;
        let begin = range.end.bytes;
        range.end.bytes += read as u64;
        if range.end.lines > skip {
            size += read;
            range.events.push(StoredEvent {
                number: range.end.lines,
                begin,
                line: std::mem::take(&mut line),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// The range of a new file with this text.
    fn range(text: &str, place: EventPlace, skip: u64, limit: usize, max_bytes: usize) -> EventRange {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        read_range(file, place, skip, limit, max_bytes, false).unwrap()
    }

    fn lines(range: &EventRange) -> Vec<(u64, String)> {
        let text = |line: &[u8]| String::from_utf8(line.to_vec()).unwrap();
        range.events.iter().map(|event| (event.number, text(&event.line))).collect()
    }

    #[test]
    fn a_reader_continues_after_the_last_complete_line() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"one\ntwo\nthr").unwrap();
        let read =
            |file: &File, place| read_range(file.try_clone().unwrap(), place, 0, 9, 1_000, false).unwrap();
        let first = read(&file, EventPlace::default());
        assert_eq!(lines(&first), [(1, "one".to_owned()), (2, "two".to_owned())]);
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(b"ee\n").unwrap();
        let next = read(&file, first.end);
        assert_eq!(lines(&next), [(3, "three".to_owned())]);
        assert!(!next.has_more && !next.is_restarted);
        let restarted = range("new\n", next.end, 0, 9, 1_000);
        assert!(restarted.is_restarted);
        assert_eq!(lines(&restarted), [(1, "new".to_owned())]);
    }

    #[test]
    fn the_time_of_an_event_is_that_of_the_last_mark_before_it() {
        let times = EventTimes::parse(Some(5), "10 1000\n30 2000\nbroken\n");
        let of = |begin| times.of(&StoredEvent { number: 1, begin, line: Vec::new() });
        assert_eq!([0, 9, 10, 29, 30, 99].map(of), [5, 5, 1000, 1000, 2000, 2000].map(Some));
    }

    #[test]
    fn a_range_is_bounded_by_lines_and_bytes_and_has_at_least_one_line() {
        let text = "a\nbb\nccc\ndddd\n";
        let by_lines = range(text, EventPlace::default(), 1, 2, 1_000);
        assert_eq!(lines(&by_lines), [(2, "bb".to_owned()), (3, "ccc".to_owned())]);
        assert!(by_lines.has_more);
        let by_bytes = range(text, EventPlace::default(), 3, 9, 1);
        assert_eq!(lines(&by_bytes), [(4, "dddd".to_owned())]);
        assert!(!by_bytes.has_more);
        assert!(range(text, EventPlace::default(), 0, 9, 6).has_more);
    }

    #[test]
    fn the_last_line_of_an_ended_task_needs_no_end() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"one\ntwo").unwrap();
        let found = read_range(file, EventPlace::default(), 0, 9, 1_000, true).unwrap();
        assert_eq!(lines(&found), [(1, "one".to_owned()), (2, "two".to_owned())]);
    }
}
