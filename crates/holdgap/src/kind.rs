//! What kinds of holders there are, and sets of them.

/// What kind of holder a hold belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HoldKind {
    /// Tracks what an importing runtime has applied of the compaction commands; no reader behind it.
    Standing,
    /// An import into another runtime's dataflow.
    Import,
    /// A reader that has not been imported.
    Reader,
}

impl HoldKind {
    /// Every kind, in the order in which reports list them.
    pub const ALL: [HoldKind; 3] = [HoldKind::Standing, HoldKind::Import, HoldKind::Reader];

    /// The value of the `kind` label.
    pub fn label(self) -> &'static str {
        match self {
            HoldKind::Standing => "standing",
            HoldKind::Import => "import",
            HoldKind::Reader => "reader",
        }
    }
}

impl std::fmt::Display for HoldKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.label())
    }
}

/// A set of kinds of holders.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct HoldKinds(u8);

impl HoldKinds {
    /// Adds a kind.
    pub fn insert(&mut self, kind: HoldKind) {
        self.0 |= 1 << kind as u8;
    }

    /// Whether a kind is among them.
    pub fn contains(self, kind: HoldKind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }

    /// The kinds, in the order of [`HoldKind::ALL`].
    pub fn iter(self) -> impl Iterator<Item = HoldKind> {
        HoldKind::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }
}

impl FromIterator<HoldKind> for HoldKinds {
    fn from_iter<I: IntoIterator<Item = HoldKind>>(kinds: I) -> Self {
        let mut set = HoldKinds::default();
        kinds.into_iter().for_each(|kind| set.insert(kind));
        set
    }
}

impl std::fmt::Debug for HoldKinds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
