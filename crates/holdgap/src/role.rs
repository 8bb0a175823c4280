//! The role of a runtime: which of several timely runtimes in one process it is.

use crate::sync::Arc;

/// Which runtime of the process a point belongs to.
///
/// ```
/// use holdgap::Role;
///
/// assert_eq!(Role::Interactive.label(), Some("interactive"));
/// assert_eq!(Role::named("ingest").label(), Some("ingest"));
/// assert_eq!(Role::Solo.label(), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Maintains arrangements that others read.
    Maintenance,
    /// Answers questions over arrangements that others maintain.
    Interactive,
    /// The only runtime of its process: its gauges carry no role label.
    #[default]
    Solo,
    /// A role that the embedder names.
    Named(Arc<str>),
}

impl Role {
    /// A role with a name of your own.
    pub fn named(name: impl Into<Arc<str>>) -> Self {
        Role::Named(name.into())
    }

    /// The value of the `role` label, or `None` where there is no such label.
    pub fn label(&self) -> Option<&str> {
        match self {
            Role::Maintenance => Some("maintenance"),
            Role::Interactive => Some("interactive"),
            Role::Solo => None,
            Role::Named(name) => Some(name),
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.label().unwrap_or("solo"))
    }
}
