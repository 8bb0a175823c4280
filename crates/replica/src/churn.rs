//! What the arrangements contain: a plain table of the truth, and the updates that change it.
//!
//! Every arrangement has the same keys, each with one value. At each round a share of the keys get
//! a new value, so that each round's updates replace earlier ones and compaction has work to do.

/// The name of an arrangement, unique within its replica and never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArrangementId(pub u64);

impl std::fmt::Display for ArrangementId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "u{}", self.0)
    }
}

/// One key's change of value: `old` is `None` for a key that is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) key: u64,
    pub(crate) old: Option<u64>,
    pub(crate) new: u64,
}

/// Every so many rounds a key gets a new value.
const PERIOD: u64 = 4;

/// The truth about one arrangement: one value for each key, changed round by round.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    id: ArrangementId,
    values: Vec<u64>,
    /// The values before the last round; `None` until there were two.
    before: Option<Vec<u64>>,
    round: u64,
}

impl Table {
    /// The table before its first round: no rows.
    pub(crate) fn new(id: ArrangementId) -> Self {
        Table { id, values: Vec::new(), before: None, round: 0 }
    }

    /// Goes on to the next round, and returns what it changes. The first round inserts all `keys`.
    pub(crate) fn next_round(&mut self, keys: u64) -> Vec<Change> {
        self.round += 1;
        if self.values.is_empty() {
            self.values = (0..keys).map(|key| self.value(key)).collect();
            let rows = self.values.iter().zip(0..);
            return rows.map(|(&new, key)| Change { key, old: None, new }).collect();
        }
        self.before = Some(self.values.clone());
        let due = (0..keys).filter(|key| (key + self.round) % PERIOD == self.id.0 % PERIOD);
        let mut changes = Vec::new();
        for key in due {
            let new = self.value(key);
            let old = std::mem::replace(&mut self.values[key as usize], new);
            changes.push(Change { key, old: Some(old), new });
        }
        changes
    }

    /// The value that `key` gets at this round.
    fn value(&self, key: u64) -> u64 {
        let mixed = (self.id.0 << 40 ^ self.round << 20 ^ key).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed >> 40
    }

    /// The rows before the last round of this table joined with another by key, in order.
    pub(crate) fn join_before(&self, other: &Table) -> Option<Vec<(u64, u64, u64)>> {
        let pairs = self.before.as_ref()?.iter().zip(other.before.as_ref()?).zip(0..);
        Some(pairs.map(|((&left, &right), key)| (key, left, right)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn changes_lead_from_one_table_to_the_next() {
        let mut table = Table::new(ArrangementId(3));
        let mut rows: BTreeMap<u64, u64> = BTreeMap::new();
        for _ in 0..10 {
            let changes = table.next_round(20);
            assert!(!changes.is_empty());
            for Change { key, old, new } in changes {
                assert_eq!(rows.insert(key, new), old);
            }
            let values: Vec<u64> = rows.values().copied().collect();
            assert_eq!(values, table.values);
        }
    }
}
