//! `cargo fuzz run web_config`: the web configuration, whatever its file says.

#![no_main]

#[allow(dead_code, reason = "another target's half")]
#[path = "../harness/web.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    harness::config(data);
});
