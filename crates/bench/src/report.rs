//! Figures as rows: ours, the baseline's, their ratio, the goal.

use serde::Serialize;

use crate::load::Latencies;

/// What a figure should be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// Ours is at most so many times the baseline's.
    RatioAtMost(f64),
    /// Ours is at least so many times the baseline's.
    RatioAtLeast(f64),
    /// Ours is at most this.
    AtMost(f64),
    /// Ours is at least this.
    AtLeast(f64),
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What was measured.
    pub figure: String,
    /// Its unit.
    pub unit: &'static str,
    /// Ours.
    pub ours: Option<f64>,
    /// That of the published server, measured here and now.
    pub baseline: Option<f64>,
    /// What ours should be.
    pub goal: Option<Goal>,
}

impl Row {
    /// A figure of ours alone.
    pub fn ours(figure: impl Into<String>, unit: &'static str, ours: f64) -> Self {
        Self {
            figure: figure.into(),
            unit,
            ours: Some(ours),
            baseline: None,
            goal: None,
        }
    }

    /// The same with the baseline's beside it.
    #[must_use]
    pub fn beside(self, baseline: Option<f64>) -> Self {
        Self { baseline, ..self }
    }

    /// The same with a goal.
    #[must_use]
    pub fn goal(self, goal: Goal) -> Self {
        Self {
            goal: Some(goal),
            ..self
        }
    }

    /// Ours as a multiple of the baseline's.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.ours? / self.baseline.filter(|baseline| *baseline > 0.0)?)
    }

    /// Whether the goal is met; `None` without one, or without what it speaks of.
    pub fn is_met(&self) -> Option<bool> {
        Some(match self.goal? {
            Goal::RatioAtMost(most) => self.ratio()? <= most,
            Goal::RatioAtLeast(least) => self.ratio()? >= least,
            Goal::AtMost(most) => self.ours? <= most,
            Goal::AtLeast(least) => self.ours? >= least,
        })
    }
}

/// Everything that was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// What kind of machine this is, by name.
    pub machine: Vec<(&'static str, String)>,
    /// The figures, in the order in which they were measured.
    pub rows: Vec<Row>,
}

impl Report {
    pub(crate) fn new(machine: Vec<(&'static str, String)>) -> Self {
        Self {
            machine,
            rows: Vec::new(),
        }
    }

    pub(crate) fn add_disk(&mut self, when: &str, disk: &Latencies) {
        let name = format!("fdatasync of 4 KiB, {when}, p50");
        self.rows.push(Row::ours(name, "ms", disk.ms(0.5)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_speaks_of_the_figure_or_of_its_ratio() {
        let row = Row::ours("read", "ms", 0.1);
        assert_eq!(row.is_met(), None);
        for (goal, baseline, met) in [
            (Goal::RatioAtMost(0.4), Some(0.25), Some(true)),
            (Goal::RatioAtMost(0.4), Some(0.2), Some(false)),
            (Goal::RatioAtMost(0.4), None, None),
            (Goal::RatioAtLeast(10.0), Some(0.01), Some(true)),
            (Goal::AtMost(0.1), None, Some(true)),
            (Goal::AtLeast(0.2), None, Some(false)),
            (Goal::RatioAtMost(0.4), Some(0.0), None),
        ] {
            let row = row.clone().beside(baseline).goal(goal);
            assert_eq!(row.is_met(), met, "{goal:?} {baseline:?}");
        }
    }
}
