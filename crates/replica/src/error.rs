//! What a replica dies of.

/// A worker of the replica could not start, or panicked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaError {
    /// The runtime that the worker belonged to.
    pub runtime: &'static str,
    /// What it said.
    pub message: String,
}

impl std::fmt::Display for ReplicaError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a worker of the {} runtime ended: {}", self.runtime, self.message)
    }
}

impl std::error::Error for ReplicaError {}
