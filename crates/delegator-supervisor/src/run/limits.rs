//! The two time limits of a run: idle time and total time.
//!
//! Pure: the caller passes the monotonic time since the start. A pause of the supervisor itself (it was
//! stopped, or the machine slept) is excluded from both limits, because it could not observe any output
//! meanwhile.

use std::time::Duration;

use delegator_domain::task::LimitKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub idle: Duration,
    pub hard: Duration,
    /// Only output resets the idle limit, not processor time that the agent's descendants use.
    pub only_output_counts: bool,
}

impl Default for Limits {
    fn default() -> Self {
        let (idle, hard) = (Duration::from_secs(300), Duration::from_secs(1200));
        Self { idle, hard, only_output_counts: false }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitWarning {
    pub kind: LimitKind,
    pub left: Duration,
}

const WARNING_LEAD: Duration = Duration::from_secs(30);
const MIN_WARNED_LIMIT: Duration = Duration::from_secs(60);
const REPORT_TIME: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub(crate) struct LimitTimers {
    limits: Limits,
    last_activity: Duration,
    hard_at: Duration,
    warned_of_idle: bool,
    warned_of_hard: bool,
    reported_silence: bool,
    /// `None` if only output counts as activity.
    sampler: Option<ActivitySampler>,
}

impl LimitTimers {
    pub(crate) fn new(limits: Limits, ticks_per_second: u64) -> LimitTimers {
        let sampler = || ActivitySampler::new(limits.idle, ticks_per_second);
        LimitTimers {
            limits,
            last_activity: Duration::ZERO,
            hard_at: limits.hard,
            warned_of_idle: false,
            warned_of_hard: false,
            reported_silence: false,
            sampler: (!limits.only_output_counts).then(sampler),
        }
    }

    pub(crate) fn record_activity(&mut self, now: Duration) {
        self.last_activity = self.last_activity.max(now);
        self.warned_of_idle = false;
        self.reported_silence = false;
    }

    pub(crate) fn exclude_pause(&mut self, gap: Duration) {
        self.last_activity += gap;
        self.hard_at += gap;
        if let Some(sampler) = &mut self.sampler {
            sampler.last_sample = None;
        }
    }

    /// Whether the processor time is to be sampled: after some silence, and before it is reported or the idle
    /// limit is enforced.
    pub(crate) fn is_sample_due(&mut self, now: Duration) -> bool {
        let is_expired = self.expired(now) == Some(LimitKind::Idle) || self.is_silence_due(now);
        let idle_time = self.idle_time(now);
        let Some(sampler) = &mut self.sampler else { return false };
        if idle_time < sampler.min_silence() {
            sampler.last_sample = None;
            return false;
        }
        sampler.is_due(now) || is_expired
    }

    /// Adds a sample of the processor time, in clock ticks.
    pub(crate) fn record_sample(&mut self, now: Duration, ticks: u64) {
        if self.sampler.as_mut().is_some_and(|sampler| sampler.sample_shows_activity(now, ticks)) {
            self.record_activity(now);
        }
    }

    /// When the next sample is due if nothing happens.
    pub(crate) fn next_sample(&self, now: Duration) -> Option<Duration> {
        let sampler = self.sampler.as_ref()?;
        let first = now.saturating_sub(self.idle_time(now)) + sampler.min_silence();
        Some(sampler.next_due().unwrap_or(first))
    }

    pub(crate) fn idle_time(&self, now: Duration) -> Duration {
        now.saturating_sub(self.last_activity)
    }

    fn idle_at(&self) -> Duration {
        self.last_activity + self.limits.idle
    }

    /// Half of the idle limit without activity.
    fn silent_at(&self) -> Duration {
        self.last_activity + self.limits.idle / 2
    }

    fn is_silence_due(&self, now: Duration) -> bool {
        !self.reported_silence && now >= self.silent_at()
    }

    /// Returns the time without activity and its limit, once for each silence.
    pub(crate) fn silence(&mut self, now: Duration) -> Option<(Duration, Duration)> {
        let is_due = self.is_silence_due(now);
        self.reported_silence |= is_due;
        is_due.then(|| (self.idle_time(now), self.limits.idle))
    }

    /// The limit that has expired; the earlier one if both have.
    pub(crate) fn expired(&self, now: Duration) -> Option<LimitKind> {
        let (kind, at) = if self.idle_at() < self.hard_at {
            (LimitKind::Idle, self.idle_at())
        } else {
            (LimitKind::Hard, self.hard_at)
        };
        (now >= at).then_some(kind)
    }

    /// Returns each warning once, when it is due.
    pub(crate) fn warning(&mut self, now: Duration) -> Option<LimitWarning> {
        let left = |at: Duration| at.saturating_sub(now);
        let is_near = |limit: Duration, at: Duration| limit >= MIN_WARNED_LIMIT && left(at) <= WARNING_LEAD;
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

    /// Whether the agent should stop to have time for a report: a quarter of the hard limit is left, or two
    /// minutes.
    pub(crate) fn is_hard_limit_near(&self, now: Duration) -> bool {
        now + (self.limits.hard / 4).min(REPORT_TIME) >= self.hard_at
    }

    pub(crate) fn next_deadline(&self) -> Duration {
        let limit = self.idle_at().min(self.hard_at);
        if self.reported_silence { limit } else { limit.min(self.silent_at()) }
    }
}

/// Detects activity by processor time: one percent of one processor.
#[derive(Debug)]
struct ActivitySampler {
    window: Duration,
    ticks_per_second: u64,
    last_sample: Option<(Duration, u64)>,
}

const MAX_WINDOW: Duration = Duration::from_secs(10);
const MIN_WINDOW: Duration = Duration::from_millis(50);

impl ActivitySampler {
    fn new(idle: Duration, ticks_per_second: u64) -> ActivitySampler {
        let window = (idle / 4).clamp(MIN_WINDOW, MAX_WINDOW);
        ActivitySampler { window, ticks_per_second, last_sample: None }
    }

    /// How long the agent must be silent before sampling starts.
    fn min_silence(&self) -> Duration {
        self.window / 2
    }

    fn is_due(&self, now: Duration) -> bool {
        self.last_sample.is_none_or(|(at, _)| now >= at + self.window)
    }

    fn next_due(&self) -> Option<Duration> {
        self.last_sample.map(|(at, _)| at + self.window)
    }

    /// Adds a sample and returns whether there was activity since the last one. Processor time of unreaped
    /// children can vanish, so a lower value than before starts over.
    fn sample_shows_activity(&mut self, now: Duration, ticks: u64) -> bool {
        let before = self.last_sample.replace((now, ticks));
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

    fn timers(idle: u64, hard: u64) -> LimitTimers {
        let limits = Limits { idle: seconds(idle), hard: seconds(hard), only_output_counts: false };
        LimitTimers::new(limits, 100)
    }

    #[test]
    fn silence_expires_the_idle_limit_and_output_resets_it() {
        let mut timers = timers(10, 100);
        assert_eq!(timers.expired(seconds(9)), None);
        timers.record_activity(seconds(9));
        assert_eq!(timers.expired(seconds(18)), None);
        assert_eq!(timers.expired(seconds(19)), Some(LimitKind::Idle));
        timers.record_activity(seconds(95));
        assert_eq!(timers.expired(seconds(100)), Some(LimitKind::Hard));
    }

    #[test]
    fn supervisor_pauses_are_excluded_from_limits() {
        let mut timers = timers(10, 20);
        timers.exclude_pause(seconds(60));
        assert_eq!(timers.expired(seconds(69)), None);
        assert_eq!(timers.expired(seconds(70)), Some(LimitKind::Idle));
        timers.record_activity(seconds(79));
        assert_eq!(timers.expired(seconds(80)), Some(LimitKind::Hard));
    }

    #[test]
    fn long_limits_warn_once() {
        let mut timers = timers(60, 1200);
        assert_eq!(timers.warning(seconds(29)), None);
        let warning = LimitWarning { kind: LimitKind::Idle, left: seconds(30) };
        assert_eq!(timers.warning(seconds(30)), Some(warning));
        assert_eq!(timers.warning(seconds(31)), None);
        timers.record_activity(seconds(40));
        assert!(timers.warning(seconds(70)).is_some(), "quiet again");
        let mut short = self::timers(59, 59);
        assert_eq!(short.warning(seconds(58)), None);
    }

    #[test]
    fn each_silence_of_half_the_idle_limit_is_reported_once() {
        let mut timers = timers(10, 100);
        assert_eq!((timers.silence(seconds(4)), timers.next_deadline()), (None, seconds(5)));
        assert_eq!(timers.silence(seconds(6)), Some((seconds(6), seconds(10))));
        assert_eq!((timers.silence(seconds(7)), timers.next_deadline()), (None, seconds(10)));
        timers.record_activity(seconds(8));
        assert_eq!((timers.silence(seconds(12)), timers.next_deadline()), (None, seconds(13)));
        assert!(timers.silence(seconds(13)).is_some());
    }

    #[test]
    fn a_report_gets_a_quarter_of_the_hard_limit_or_two_minutes() {
        let (short, long) = (timers(10, 20), timers(300, 1200));
        assert!(!short.is_hard_limit_near(seconds(14)) && short.is_hard_limit_near(seconds(15)));
        assert!(!long.is_hard_limit_near(seconds(1079)) && long.is_hard_limit_near(seconds(1080)));
    }

    #[test]
    fn one_percent_of_a_processor_is_activity() {
        let mut sampler = ActivitySampler::new(seconds(300), 100);
        assert!(!sampler.sample_shows_activity(seconds(0), 500), "the first look knows nothing");
        assert!(!sampler.is_due(seconds(9)) && sampler.is_due(seconds(10)));
        assert!(!sampler.sample_shows_activity(seconds(10), 509));
        assert!(sampler.sample_shows_activity(seconds(20), 519));
        assert!(!sampler.sample_shows_activity(seconds(30), 100), "time vanished");
        assert!(sampler.sample_shows_activity(seconds(40), 110));
    }
}
