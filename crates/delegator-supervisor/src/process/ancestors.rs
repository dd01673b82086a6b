//! The ancestors of a process.

use super::stat::read_stat;

/// How often a chain is read again because a parent ended meanwhile.
const MAX_READS: usize = 100;

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
