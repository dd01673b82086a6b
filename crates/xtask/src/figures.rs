//! Measured figures, their bounds and how they are printed.

use serde::Serialize;

/// The permitted range of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// No bound: reported for context.
    Free,
    AtMost(f64),
    AtLeast(f64),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    pub what: String,
    pub value: f64,
    pub unit: &'static str,
    pub bound: Bound,
}

impl Figure {
    fn new(what: impl Into<String>, value: f64, unit: &'static str, bound: Bound) -> Figure {
        Figure { what: what.into(), value, unit, bound }
    }

    pub(crate) fn unbounded(what: impl Into<String>, value: f64, unit: &'static str) -> Figure {
        Figure::new(what, value, unit, Bound::Free)
    }

    pub(crate) fn at_most(max: f64, what: impl Into<String>, value: f64, unit: &'static str) -> Figure {
        Figure::new(what, value, unit, Bound::AtMost(max))
    }

    pub(crate) fn at_least(min: f64, what: impl Into<String>, value: f64, unit: &'static str) -> Figure {
        Figure::new(what, value, unit, Bound::AtLeast(min))
    }

    /// A count that must be zero.
    pub(crate) fn must_be_zero(what: impl Into<String>, count: usize) -> Figure {
        Figure::new(what, count as f64, "", Bound::AtMost(0.0))
    }

    /// A count without a bound.
    pub(crate) fn count(what: impl Into<String>, count: usize) -> Figure {
        Figure::new(what, count as f64, "", Bound::Free)
    }

    /// Whether the bound is met. A value that could not be measured (NaN) meets none.
    pub fn is_met(&self) -> bool {
        match self.bound {
            Bound::Free => true,
            Bound::AtMost(max) => self.value <= max,
            Bound::AtLeast(min) => self.value >= min,
        }
    }

    fn format_value(&self, value: f64) -> String {
        let number = if value.fract() == 0.0 || value.abs() >= 1000.0 {
            format!("{value:.0}")
        } else if value.abs() >= 10.0 {
            format!("{value:.1}")
        } else {
            format!("{value:.2}")
        };
        format!("{number} {}", self.unit).trim_end().to_owned()
    }

    fn row(&self) -> String {
        let (bound, verdict) = match self.bound {
            Bound::Free => (String::new(), ""),
            Bound::AtMost(max) => (format!("≤ {}", self.format_value(max)), "ok"),
            Bound::AtLeast(min) => (format!("≥ {}", self.format_value(min)), "ok"),
        };
        let verdict = if self.is_met() { verdict } else { "MISSED" };
        format!("| {} | {} | {bound} | {verdict} |\n", self.what, self.format_value(self.value))
    }
}

/// The figures of one tier.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    pub title: String,
    pub scale: f64,
    pub runs: usize,
    pub seed: u64,
    pub cores: usize,
    pub load1_before: f64,
    pub load1_after: f64,
    pub figures: Vec<Figure>,
    pub notes: Vec<String>,
}

impl Report {
    pub fn is_met(&self) -> bool {
        self.figures.iter().all(Figure::is_met)
    }

    pub fn table(&self) -> String {
        let runs = if self.runs == 1 { "1 run".to_owned() } else { format!("median of {} runs", self.runs) };
        let mut text = format!(
            "{}: scale {}, {runs}, seed {}, {} cores, load1 {:.1} before and {:.1} after\n\n",
            self.title, self.scale, self.seed, self.cores, self.load1_before, self.load1_after
        );
        text.push_str("| figure | value | bound | verdict |\n|---|---|---|---|\n");
        text.extend(self.figures.iter().map(Figure::row));
        for note in &self.notes {
            text.push_str(&format!("\n{note}\n"));
        }
        text
    }
}

/// Merges several runs: the median of each figure.
pub(crate) fn median_of_runs(mut runs: Vec<Vec<Figure>>) -> Vec<Figure> {
    let Some(last) = runs.pop() else { return Vec::new() };
    last.into_iter()
        .map(|figure| {
            let others = runs.iter().flatten().filter(|other| other.what == figure.what);
            let mut values: Vec<f64> = others.map(|other| other.value).collect();
            values.push(figure.value);
            Figure { value: percentile(&mut values, 50.0), ..figure }
        })
        .collect()
}

/// The smallest value that at least `percent` of the values do not exceed; NaN, which meets no bound, for no values.
pub(crate) fn percentile(values: &mut [f64], percent: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * percent / 100.0).ceil() as usize;
    values.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}

/// The slope of the least-squares line through these points.
pub(crate) fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let rise: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let run: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    if run == 0.0 { 0.0 } else { rise / run }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let mut values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile(&mut values, 50.0), 100.0);
        assert_eq!(percentile(&mut values, 99.0), 198.0);
        assert_eq!(percentile(&mut values, 100.0), 200.0);
        assert!(percentile(&mut [], 50.0).is_nan());
    }

    #[test]
    fn unmeasured_values_meet_no_bound() {
        assert!(!Figure::new("x", f64::NAN, "ms", Bound::AtMost(1.0)).is_met());
        assert!(!Figure::must_be_zero("x", 1).is_met());
        assert!(Figure::new("x", 1.0, "ms", Bound::AtMost(1.0)).is_met());
    }

    #[test]
    fn runs_are_merged_by_figure_name() {
        let run = |value| vec![Figure::new("x", value, "s", Bound::AtMost(2.0))];
        let joined = median_of_runs(vec![run(1.0), run(9.0), run(2.0)]);
        assert_eq!(joined, run(2.0));
    }

    #[test]
    fn slope_of_points_on_a_line() {
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]), 2.0);
        assert_eq!(slope(&[(1.0, 1.0)]), 0.0);
    }
}
