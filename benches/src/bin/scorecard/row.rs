//! One question of the scorecard, and its answer.

use serde::{Serialize, Serializer};

/// What a ratio should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// Nothing is asked of it: it stands beside the others.
    None,
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::AtMost(most) => write!(f, "<= {most}"),
            Target::AtLeast(least) => write!(f, ">= {least}"),
            Target::None => f.write_str("-"),
        }
    }
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A row of the table.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) holdgap: f64,
    pub(crate) peer: f64,
    pub(crate) unit: &'static str,
    pub(crate) ratio: f64,
    pub(crate) target: Target,
    pub(crate) met: Option<bool>,
}

impl Row {
    /// A row whose ratio is holdgap's figure over its peer's.
    pub(crate) fn of(
        name: impl Into<String>,
        unit: &'static str,
        holdgap: f64,
        peer: f64,
        target: Target,
    ) -> Self {
        Row::with_ratio(name, unit, holdgap, peer, holdgap / peer, target)
    }

    /// A row that says how many times faster holdgap is.
    pub(crate) fn speedup(name: impl Into<String>, holdgap: f64, peer: f64, least: f64) -> Self {
        Row::with_ratio(name, "ns", holdgap, peer, peer / holdgap, Target::AtLeast(least))
    }

    pub(crate) fn with_ratio(
        name: impl Into<String>,
        unit: &'static str,
        holdgap: f64,
        peer: f64,
        ratio: f64,
        target: Target,
    ) -> Self {
        let met = match target {
            Target::AtMost(most) => Some(ratio <= most),
            Target::AtLeast(least) => Some(ratio >= least),
            Target::None => None,
        };
        Row { name: name.into(), holdgap, peer, unit, ratio, target, met }
    }

    pub(crate) fn line(&self, width: usize) -> String {
        let figure = |value: f64| match value {
            0.0 => "-".to_owned(),
            value if value < 100.0 => format!("{value:.2} {}", self.unit),
            value => format!("{value:.0} {}", self.unit),
        };
        let met = match self.met {
            Some(true) => "  met",
            Some(false) => "  MISSED",
            None => "",
        };
        let (name, target) = (&self.name, self.target.to_string());
        let (holdgap, peer) = (figure(self.holdgap), figure(self.peer));
        format!("{name:width$}  {holdgap:>11}  {peer:>11}  {:>8.3}  {target:>9}{met}", self.ratio)
    }
}
