//! The two clocks of a run: how long it may be quiet, how long it may take.
//!
//! Pure: time is the monotonic time since the start, and is told. A pause of our own (we were stopped, or the machine
//! slept) is taken off both clocks: nobody could have been heard in it.

use std::time::Duration;

use delegator_domain::task::LimitKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub idle: Duration,
    pub hard: Duration,
    pub idle_counts: IdleCounts,
}

impl Default for Limits {
    fn default() -> Self {
        let (idle, hard) = (Duration::from_secs(300), Duration::from_secs(1200));
        Self { idle, hard, idle_counts: IdleCounts::Activity }
    }
}

/// What keeps a run from being idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdleCounts {
    /// Output, or processor time used by what descends from the agent.
    #[default]
    Activity,
    /// Output alone.
    Output,
}

/// A limit is near.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitWarning {
    pub kind: LimitKind,
    pub left: Duration,
}

const WARNED_BEFORE: Duration = Duration::from_secs(30);
const SHORTEST_WARNED: Duration = Duration::from_secs(60);

/// Watches both limits.
#[derive(Debug)]
pub(crate) struct Watch {
    limits: Limits,
    last_activity: Duration,
    hard_at: Duration,
    warned_of_idle: bool,
    warned_of_hard: bool,
}

impl Watch {
    pub(crate) fn new(limits: Limits) -> Watch {
        let hard_at = limits.hard;
        Watch { limits, last_activity: Duration::ZERO, hard_at, warned_of_idle: false, warned_of_hard: false }
    }

    pub(crate) fn activity(&mut self, now: Duration) {
        self.last_activity = self.last_activity.max(now);
        self.warned_of_idle = false;
    }

    pub(crate) fn paused(&mut self, gap: Duration) {
        self.last_activity += gap;
        self.hard_at += gap;
    }

    pub(crate) fn quiet(&self, now: Duration) -> Duration {
        now.saturating_sub(self.last_activity)
    }

    fn idle_at(&self) -> Duration {
        self.last_activity + self.limits.idle
    }

    /// The limit that is over. Of two, the one that was first.
    pub(crate) fn over(&self, now: Duration) -> Option<LimitKind> {
        let (kind, at) = if self.idle_at() < self.hard_at {
            (LimitKind::Idle, self.idle_at())
        } else {
            (LimitKind::Hard, self.hard_at)
        };
        (now >= at).then_some(kind)
    }

    /// A warning that is due, once.
    pub(crate) fn warning(&mut self, now: Duration) -> Option<LimitWarning> {
        let left = |at: Duration| at.saturating_sub(now);
        let is_near = |limit: Duration, at: Duration| limit >= SHORTEST_WARNED && left(at) <= WARNED_BEFORE;
        if !self.warned_of_hard && is_near(self.limits.hard, self.hard_at) {
            self.warned_of_hard = true;
            return Some(LimitWarning { kind: LimitKind::Hard, left: left(self.hard_at) });
        }
        if !self.warned_of_idle && is_near(self.limits.idle, self.idle_at()) {
            self.warned_of_idle = true;
            return Some(LimitWarning { kind: LimitKind::Idle, left: left(self.idle_at()) });
        }
        None
    }

    /// When a limit is over if nothing happens.
    pub(crate) fn next(&self) -> Duration {
        self.idle_at().min(self.hard_at)
    }
}

/// Tells work from rest by processor time: a hundredth of one processor.
#[derive(Debug)]
pub(crate) struct Sampler {
    window: Duration,
    ticks_per_second: u64,
    last: Option<(Duration, u64)>,
}

const LONGEST_WINDOW: Duration = Duration::from_secs(10);
const SHORTEST_WINDOW: Duration = Duration::from_millis(50);

impl Sampler {
    pub(crate) fn new(idle: Duration, ticks_per_second: u64) -> Sampler {
        let window = (idle / 4).clamp(SHORTEST_WINDOW, LONGEST_WINDOW);
        Sampler { window, ticks_per_second, last: None }
    }

    /// How long there must be silence before it is worth a look.
    pub(crate) fn rest(&self) -> Duration {
        self.window / 2
    }

    /// Whether it is time to look.
    pub(crate) fn is_due(&self, now: Duration) -> bool {
        self.last.is_none_or(|(at, _)| now >= at + self.window)
    }

    pub(crate) fn next(&self) -> Option<Duration> {
        self.last.map(|(at, _)| at + self.window)
    }

    /// There is output: no need to look.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }

    /// Takes a look and says whether there was work since the last one. Processor time can vanish (with children
    /// nobody waits for), so less than before is a new beginning.
    pub(crate) fn is_working(&mut self, now: Duration, ticks: u64) -> bool {
        let before = self.last.replace((now, ticks));
        before.is_some_and(|(at, earlier)| {
            let millis = u64::try_from(now.saturating_sub(at).as_millis()).unwrap_or(u64::MAX);
            let needed = (millis.saturating_mul(self.ticks_per_second) / 100_000).max(1);
            ticks.saturating_sub(earlier) >= needed
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn watch(idle: u64, hard: u64) -> Watch {
        let limits = Limits { idle: seconds(idle), hard: seconds(hard), idle_counts: IdleCounts::Activity };
        Watch::new(limits)
    }

    #[test]
    fn silence_is_idle_and_output_is_not() {
        let mut watch = watch(10, 100);
        assert_eq!(watch.over(seconds(9)), None);
        watch.activity(seconds(9));
        assert_eq!(watch.over(seconds(18)), None);
        assert_eq!(watch.over(seconds(19)), Some(LimitKind::Idle));
        watch.activity(seconds(95));
        assert_eq!(watch.over(seconds(100)), Some(LimitKind::Hard));
    }

    #[test]
    fn a_pause_of_ours_counts_for_nothing() {
        let mut watch = watch(10, 20);
        watch.paused(seconds(60));
        assert_eq!(watch.over(seconds(69)), None);
        assert_eq!(watch.over(seconds(70)), Some(LimitKind::Idle));
        watch.activity(seconds(79));
        assert_eq!(watch.over(seconds(80)), Some(LimitKind::Hard));
    }

    #[test]
    fn long_limits_are_announced_once() {
        let mut watch = watch(60, 1200);
        assert_eq!(watch.warning(seconds(29)), None);
        let warning = LimitWarning { kind: LimitKind::Idle, left: seconds(30) };
        assert_eq!(watch.warning(seconds(30)), Some(warning));
        assert_eq!(watch.warning(seconds(31)), None);
        watch.activity(seconds(40));
        assert!(watch.warning(seconds(70)).is_some(), "quiet again");
        let mut short = self::watch(59, 59);
        assert_eq!(short.warning(seconds(58)), None);
    }

    #[test]
    fn a_hundredth_of_a_processor_is_work() {
        let mut sampler = Sampler::new(seconds(300), 100);
        assert!(!sampler.is_working(seconds(0), 500), "the first look knows nothing");
        assert!(!sampler.is_due(seconds(9)) && sampler.is_due(seconds(10)));
        assert!(!sampler.is_working(seconds(10), 509));
        assert!(sampler.is_working(seconds(20), 519));
        assert!(!sampler.is_working(seconds(30), 100), "time vanished");
        assert!(sampler.is_working(seconds(40), 110));
    }
}
