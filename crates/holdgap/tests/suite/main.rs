//! What an embedder sees of the crate, through its public items only.

/// Gauges through the `metrics` facade: late, local and missing recorders, and zero at the end.
mod gauges;
/// Who holds, of what kind, since when; what is pinned and queued.
mod holders;
/// The largest gap between two looks, for each who looks.
mod peaks;
/// Registering, reporting, removing: counts against what was really published.
mod points;

/// Shorthands.
mod util {
    use timely::progress::Antichain;

    pub(crate) fn at(time: u64) -> Antichain<u64> {
        Antichain::from_elem(time)
    }
}
