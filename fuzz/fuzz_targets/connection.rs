//! `cargo fuzz run connection`: the request path, whatever comes over a connection.

#![no_main]

#[allow(dead_code, reason = "another target's half")]
#[path = "../harness/web.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    harness::connection(data);
});
