//! `cargo fuzz run segment`: the reader of segments, on whatever a file may contain.

#![no_main]

#[path = "../harness/segment.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    harness::segment(data);
});
