use proptest::collection::vec;
use proptest::prelude::*;

use crate::harness;

/// An edit, as the harness reads it: mostly where something stands.
fn edit() -> impl Strategy<Value = Vec<u8>> {
    let place = prop_oneof![
        4 => 0_u32..48,
        4 => 512_u32..544,
        4 => 33_280_u32..33_320,
        2 => 33_792_u32..33_856,
        2 => 34_816_u32..35_284,
        1 => any::<u32>(),
    ];
    let word =
        prop_oneof![any::<u64>(), Just(u64::MAX), 0_u64..100, (0_u32..64).prop_map(|n| 1 << n)];
    (place, word).prop_map(|(place, word)| [&place.to_le_bytes()[..], &word.to_le_bytes()].concat())
}

fn input() -> impl Strategy<Value = Vec<u8>> {
    let end = prop_oneof![3 => Just(Vec::new()), 1 => vec(any::<u8>(), 2..3)];
    (vec(edit(), 0..6), end).prop_map(|(edits, end)| [edits.concat(), end].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_segment_contains_it_is_read_or_refused(data in input()) {
        harness::segment(&data);
    }

    #[test]
    fn whatever_bytes_there_are_they_are_read_or_refused(data in vec(any::<u8>(), 0..200)) {
        harness::segment(&data);
    }
}

#[test]
fn the_harness_reads_what_is_whole_and_refuses_what_is_not() {
    assert!(harness::segment(&[]));
    assert!(!harness::segment(&[0; 12]), "no magic");
    assert!(!harness::segment(&[16, 0]), "cut");
}

/// Two slots whose counts add up to more than a word holds once ended the reader by a panic.
#[test]
fn counts_beyond_any_sum_saturate() {
    // The rests of the first two slots: what is pinned stands in their 13th and 14th words.
    let rest = |slot: u32| (135_168 + 64 * 64 + slot * 112) / 8;
    let edit = |place: u32| [&place.to_le_bytes()[..], &u64::MAX.to_le_bytes()].concat();
    let edits: Vec<_> = [12, 13]
        .into_iter()
        .flat_map(|word| [edit(rest(0) + word), edit(rest(1) + word)])
        .collect();
    assert!(harness::segment(&edits.concat()));
}
