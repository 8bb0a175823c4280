//! The exporter as a user runs it: a process, its sockets, its exit codes.

/// Starting the process, and asking it.
mod support;

/// Other processes, watched from outside, and what is left of them.
mod attach;
/// `docs/metrics.yml`, the code and a scrape say the same.
mod catalogue;
/// Random configurations and requests, by the harness of the fuzz targets.
mod fuzzed;
#[path = "../../../../fuzz/harness/web.rs"]
mod harness;
/// Paths, methods, types.
mod http;
/// What is logged, and what is not.
mod log;
/// A hostile network: sockets, TLS, passwords, names.
mod network;
/// Unit, image, manual and completions.
mod packaging;
/// The status page, in a browser.
mod page;
/// Flags, addresses, signals: one line and an exit code.
mod process;
/// A real Prometheus, its rules, and Grafana's panels.
mod prometheus;
/// What the documents say of the tree is so.
mod tidy;

/// The terminal view.
mod top;

/// The gauges move with a slow reader, and go back.
mod slow_reader;
