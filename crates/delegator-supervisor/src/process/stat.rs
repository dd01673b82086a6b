//! Parses `/proc/<pid>/stat`, and follows it from a process to its ancestors.

use std::fs::File;
use std::io::Read;

/// How often a chain is read again because a parent ended meanwhile.
const MAX_READS: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessStat {
    pub pid: i32,
    pub parent: i32,
    /// Pid of the session leader; 0 if it is not visible here.
    pub session: i32,
    /// `Z` and `X` are dead.
    pub state: u8,
    /// Clock ticks from boot to its start.
    pub start: u64,
    /// Processor time of the process itself, in clock ticks.
    pub own_ticks: u64,
    /// Processor time of its reaped children, in clock ticks.
    pub reaped_ticks: u64,
    /// At most 15 bytes.
    pub name: String,
}

impl ProcessStat {
    pub fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    fn parse(text: &[u8]) -> Option<ProcessStat> {
        // The name may contain anything, including brackets.
        let open = memchr::memchr(b'(', text)?;
        let close = memchr::memrchr(b')', text)?;
        let pid = std::str::from_utf8(text.get(..open)?).ok()?.trim().parse().ok()?;
        let name = String::from_utf8_lossy(text.get(open + 1..close)?).into_owned();
        let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().take(20).collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(ProcessStat {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            state: *fields.first()?.as_bytes().first()?,
            start: number(19)?,
            own_ticks: number(11)? + number(12)?,
            reaped_ticks: number(13)? + number(14)?,
            name,
        })
    }
}

/// `None` if there is no such process.
pub fn read_stat(pid: i32) -> Option<ProcessStat> {
    let mut buffer = [0; 1024];
    let mut filled = 0;
    let mut file = File::open(format!("/proc/{pid}/stat")).ok()?;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]).ok()? {
            0 => break,
            count => filled += count,
        }
    }
    ProcessStat::parse(&buffer[..filled])
}

/// A process and its ancestors, nearest first; `None` if the process is gone.
pub fn with_ancestors(pid: i32) -> Option<Vec<i32>> {
    // When a parent ends, its children get another one: only a chain that was read completely counts.
    (0..MAX_READS).take_while(|_| read_stat(pid).is_some()).find_map(|_| read_chain(pid))
}

fn read_chain(pid: i32) -> Option<Vec<i32>> {
    let (mut chain, mut next, mut start_of_child) = (Vec::new(), pid, u64::MAX);
    while next > 0 {
        // A process that is younger than its child has the pid of one that ended.
        let stat = read_stat(next).filter(|stat| stat.start <= start_of_child)?;
        chain.push(next);
        (next, start_of_child) = (stat.parent, stat.start);
    }
    Some(chain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_names_may_contain_brackets() {
        let line = b"42 (a) R 1 (b) S 7 41 42 0 -1 4194560 1 2 3 4 5 6 70 80 20 0 1 0 999 1 2";
        let stat = ProcessStat::parse(line).unwrap();
        assert_eq!((stat.pid, stat.parent, stat.state, stat.start), (42, 7, b'S', 999));
        assert_eq!(stat.session, 42);
        assert_eq!((stat.own_ticks, stat.reaped_ticks, stat.name.as_str()), (11, 150, "a) R 1 (b"));
        assert_eq!(ProcessStat::parse(b"42 (a"), None);
        assert_eq!(ProcessStat::parse(b""), None);
    }

    #[test]
    fn own_process_has_a_record() {
        let me = i32::try_from(std::process::id()).unwrap();
        assert_eq!(read_stat(me).unwrap().pid, me);
        assert_eq!(read_stat(i32::MAX), None);
    }
}
