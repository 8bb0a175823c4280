//! What an embedder may choose.

/// How a [`Registry`](crate::Registry) names its gauges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryOptions {
    /// Put before the name of every series; by default [`RegistryOptions::DEFAULT_PREFIX`].
    pub prefix: String,
}

impl RegistryOptions {
    /// The prefix that the two best known gauges carry in the system they come from.
    pub const DEFAULT_PREFIX: &str = "mz_compute_";
}

impl Default for RegistryOptions {
    fn default() -> Self {
        RegistryOptions { prefix: Self::DEFAULT_PREFIX.to_owned() }
    }
}
