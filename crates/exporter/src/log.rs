//! The log: what changed and what went wrong, on standard error; nothing in steady state.

use std::io;

use tracing::Level;

use crate::args::{LogFormat, LogLevel};

/// Starts logging, for the rest of the process.
pub(crate) fn start(level: LogLevel, format: LogFormat) {
    let level = match level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
    };
    let log = tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(level);
    let log = log.with_target(false).with_ansi(false);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
}
