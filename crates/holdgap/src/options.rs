//! What an embedder may choose.

use crate::clock::Clock;

/// How a [`Registry`](crate::Registry) names its gauges, and what clock it has.
#[derive(Clone, Debug)]
pub struct RegistryOptions {
    /// Put before the name of every series; by default [`RegistryOptions::DEFAULT_PREFIX`].
    pub prefix: String,
    /// What ages are measured on; by default the system's monotonic clock.
    pub clock: Clock,
}

impl RegistryOptions {
    /// The prefix that the two best known gauges carry in the system they come from.
    pub const DEFAULT_PREFIX: &str = "mz_compute_";
}

impl Default for RegistryOptions {
    fn default() -> Self {
        RegistryOptions { prefix: Self::DEFAULT_PREFIX.to_owned(), clock: Clock::monotonic() }
    }
}
