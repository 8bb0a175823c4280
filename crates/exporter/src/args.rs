//! The command line, as Prometheus exporters have it.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::server::TAKEN;

/// Serves the gauges that show how far readers hold back the compaction of shared arrangements.
///
/// Without a process to watch it runs a replica of its own: two timely runtimes that share
/// differential arrangements under continuous churn.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "holdgap-exporter",
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Args {
    /// Address to serve on; port 0 picks a free one, no host means every interface.
    #[arg(long = "web.listen-address", value_name = "HOST:PORT", default_value = "127.0.0.1:9877")]
    pub(crate) listen_address: String,

    /// Path under which the metrics are served.
    #[arg(long = "web.telemetry-path", value_name = "PATH", default_value = "/metrics", value_parser = telemetry_path)]
    pub(crate) telemetry_path: String,

    /// File that asks for TLS, basic authentication or headers, as Prometheus exporters have it.
    #[arg(long = "web.config.file", value_name = "FILE")]
    pub(crate) web_config: Option<PathBuf>,

    /// How many connections are served at once; more wait to be accepted.
    #[arg(long = "web.max-connections", value_name = "N", default_value = "512", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) max_connections: u16,

    /// The least important events that are logged, on standard error.
    #[arg(long = "log.level", value_name = "LEVEL", default_value = "info", global = true)]
    pub(crate) log_level: LogLevel,

    /// How they are written.
    #[arg(long = "log.format", value_name = "FORMAT", default_value = "text", global = true)]
    pub(crate) log_format: LogFormat,

    /// How many arrangements of each worker have series of their own: the worst ones.
    #[arg(long = "metrics.worst", value_name = "N", default_value = "10", value_parser = clap::value_parser!(u16).range(0..=1_000))]
    pub(crate) worst: u16,

    #[command(flatten)]
    pub(crate) attach: AttachArgs,

    #[command(flatten)]
    pub(crate) replica: ReplicaArgs,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What it does instead of serving.
#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Print what the points of a process looked like, also at its end: the worst first, holders named.
    Inspect(InspectArgs),
    /// Show in the terminal what is held, how far and by whom, and keep it up to date.
    Top(TopArgs),
    /// Print the shell's completions.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    Man,
}

/// What to show, and whether once.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TopArgs {
    /// An exporter that serves.
    #[arg(value_name = "URL", default_value = "http://127.0.0.1:9877", conflicts_with = "attach")]
    pub(crate) url: String,

    /// Watch every process that has a segment in this folder, without an exporter; may be given
    /// several times.
    #[arg(long, value_name = "DIR")]
    pub(crate) attach: Vec<PathBuf>,

    /// Print a table, and end.
    #[arg(long)]
    pub(crate) once: bool,
}

/// How important an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogLevel {
    /// What failed.
    Error,
    /// And what may need somebody's hand.
    Warn,
    /// And what changed.
    Info,
    /// And what each connection did.
    Debug,
}

/// How events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// A line for people.
    Text,
    /// A JSON object a line.
    Json,
}

/// What to look at once, and how to print it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct InspectArgs {
    /// A segment, or a folder of segments.
    #[arg(value_name = "FILE|DIR")]
    pub(crate) path: PathBuf,

    /// Print one JSON document with every point.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Other processes, watched from outside.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Other processes")]
pub(crate) struct AttachArgs {
    /// Watch every process that has a segment in this folder; may be given several times.
    #[arg(long = "attach", value_name = "DIR", conflicts_with_all = ["workers", "arrangements", "round", "slow_reader"])]
    pub(crate) folders: Vec<PathBuf>,

    /// For how long the last state of a process that has ended is served, and its segment kept.
    #[arg(long = "attach.keep", value_name = "DURATION", default_value = "1h", value_parser = duration, requires = "folders")]
    pub(crate) keep: Duration,
}

/// The embedded replica.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Embedded replica")]
pub(crate) struct ReplicaArgs {
    /// Workers of each of the two runtimes.
    #[arg(long = "replica.workers", value_name = "N", default_value = "8", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) workers: u16,

    /// Shared arrangements.
    #[arg(long = "replica.arrangements", value_name = "N", default_value = "31", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) arrangements: u32,

    /// Time from one round of updates and compaction to the next.
    #[arg(long = "replica.round", value_name = "DURATION", default_value = "1s", value_parser = round)]
    pub(crate) round: Duration,

    /// Have a reader stay for so long and hold back the first arrangement.
    #[arg(long = "replica.slow-reader", value_name = "DURATION", value_parser = duration)]
    pub(crate) slow_reader: Option<Duration>,
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "write it like 30s, 500ms or 2m".to_owned())
}

fn round(text: &str) -> Result<Duration, String> {
    let round = duration(text)?;
    if round < Duration::from_millis(1) { Err("at least 1ms".to_owned()) } else { Ok(round) }
}

fn telemetry_path(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    if !text.starts_with('/') || !text.bytes().all(plain) {
        return Err("it begins with / and has letters, digits and -_.~/ only".to_owned());
    }
    if TAKEN.contains(&text) {
        return Err(format!("{text} is served already"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn defaults_are_those_of_the_documentation() {
        let args = Args::parse_from(["holdgap-exporter"]);
        assert_eq!(args.listen_address, "127.0.0.1:9877");
        assert_eq!(args.telemetry_path, "/metrics");
        assert_eq!((args.replica.workers, args.replica.arrangements), (8, 31));
        assert_eq!(args.replica.round, Duration::from_secs(1));
        assert_eq!(args.replica.slow_reader, None);
    }
}
