//! What one look found, whatever was looked at.

use std::time::Duration;

use holdgap::{HoldReport, PointView, Registry, Scraper};

/// What one look found.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) reports: Vec<HoldReport>,
    /// The worst points of each worker, by the prefix of their process's series.
    pub(crate) worst: Vec<(String, Vec<PointView>)>,
    /// The other processes, where these are watched.
    pub(crate) processes: Option<Processes>,
}

/// What one look found of other processes beside their points.
#[derive(Default)]
pub(crate) struct Processes {
    pub(crate) seen: Vec<Process>,
    /// How often a file could not be read, by the reason.
    pub(crate) unreadable: Vec<(&'static str, u64)>,
}

/// What is served of a process beside its points.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    /// The value of the label `process`.
    pub(crate) label: String,
    pub(crate) up: bool,
    pub(crate) since_heartbeat: Duration,
    pub(crate) not_shown: u64,
}

impl Found {
    /// What one look finds in a registry of this process.
    pub(crate) fn of(registry: &Registry, scraper: &Scraper, most: usize) -> Self {
        let (reports, worst) = scraper.look(most);
        let worst = vec![(registry.options().prefix.clone(), worst)];
        Found { reports, worst, processes: None }
    }
}
