//! Where what is served comes from: the embedded replica's registry, or other processes' segments.

use holdgap::{Page, Registry, Role, Scraper};

use crate::found::Found;
use crate::watch::Watch;

/// What is watched.
pub(crate) enum Source {
    /// A registry of this process.
    Embedded {
        registry: Registry,
        scraper: Scraper,
        /// The status page's own, so that neither takes the other's peaks.
        sampler: Scraper,
        /// How many points there are once everything is published.
        expected: u64,
    },
    /// Other processes.
    Attached(Watch),
}

impl Source {
    /// A registry of this process, with so many points once everything is published.
    pub(crate) fn embedded(registry: &Registry, expected: u64) -> Self {
        let (scraper, sampler) = (registry.scraper(), registry.scraper());
        Source::Embedded { scraper, sampler, registry: registry.clone(), expected }
    }

    /// Looks once, for the `most` worst points of each worker too.
    pub(crate) fn look(&self, most: usize) -> Found {
        match self {
            Source::Embedded { registry, scraper, .. } => Found::of(registry, scraper, most),
            Source::Attached(watch) => watch.look(most),
        }
    }

    /// As [`look`](Self::look), for the status page.
    pub(crate) fn sample(&self, most: usize) -> Found {
        match self {
            Source::Embedded { registry, sampler, .. } => Found::of(registry, sampler, most),
            Source::Attached(watch) => watch.look(most),
        }
    }

    /// A page of all points, the worst first.
    pub(crate) fn page(&self, offset: usize, limit: usize) -> Page {
        match self {
            Source::Embedded { registry, .. } => registry.page(offset, limit),
            Source::Attached(watch) => watch.page(offset, limit),
        }
    }

    /// Whether everything that is watched is there to be seen; if not, what is missing.
    pub(crate) fn ready(&self) -> Result<(), String> {
        match self {
            Source::Embedded { registry, expected, .. } => {
                let reports = registry.reports();
                let maintained = reports.iter().filter(|report| report.role == Role::Maintenance);
                let published: u64 = maintained.map(|r| r.published + r.frozen).sum();
                if published >= *expected {
                    return Ok(());
                }
                Err(format!("{published} of {expected} points are published"))
            }
            Source::Attached(watch) => watch.ready(),
        }
    }
}
