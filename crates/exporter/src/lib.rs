//! Serves holdgap's gauges over HTTP.
//!
//! [`run`] turns what went wrong into one line and an exit code; `serve` does the work: bind the
//! address, start what is to be watched, serve until told to stop. The program is `run` alone; this
//! is a library so that a bench can measure [`scrape`].

#![forbid(unsafe_code)]

mod args;
mod collect;
mod found;
mod inspect;
mod pages;
mod replica;
mod server;
mod source;
mod table;
mod text;
mod watch;
mod worst;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Parser;
use clap::error::ErrorKind;
use holdgap::{Registry, Scraper};
use holdgap_segment::Segment;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::args::{Args, Command};
use crate::found::Found;
use crate::replica::{Driver, spelled};
use crate::server::{Site, router};
use crate::source::Source;
use crate::text::plain;
use crate::watch::Watch;

/// What one scrape of `registry` answers, with series for the `most` worst arrangements of each worker.
pub fn scrape(registry: &Registry, scraper: &Scraper, most: usize) -> String {
    collect::render(&Found::of(registry, scraper, most))
}

/// Does what the command line says, and returns the exit code.
pub fn run() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    let result = match &args.command {
        Some(Command::Inspect(args)) => inspect::inspect(args),
        None => serve(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do about an error of standard error.
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Help and version as asked for; a wrong flag in one line.
fn usage(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let _ = write!(io::stdout(), "{error}");
        return ExitCode::SUCCESS;
    }
    let text = error.to_string();
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("error: wrong usage");
    let _ = writeln!(io::stderr(), "{}; see --help", line.trim_end());
    ExitCode::from(2)
}

#[tokio::main]
async fn serve(args: &Args) -> anyhow::Result<()> {
    // Before anything is started, so that a signal at any time ends the process cleanly.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let listener = bind(&args.listen_address).await?;
    let address = listener.local_addr()?;

    let (ended, has_ended) = oneshot::channel();
    // Without a replica nothing of this process's own can end: the sender stays, and says nothing.
    let (source, watched, driver) = if args.attach.folders.is_empty() {
        let registry = Registry::new();
        let driver = Driver::start(&registry, &args.replica, move || {
            // The receiver goes when the process is told to stop first.
            let _ = ended.send(());
        })?;
        let replica = &args.replica;
        let expected = u64::from(replica.workers) * u64::from(replica.arrangements);
        (Source::embedded(&registry, expected), embedded(args), Ok(driver))
    } else {
        let watch = Watch::open(&args.attach.folders, args.attach.keep)?;
        let watched = attached(&watch);
        (Source::Attached(watch), watched, Err(ended))
    };
    announce(args, address, &watched)?;

    let site =
        Site { source, worst: args.worst.into(), telemetry_path: args.telemetry_path.clone() };
    let (stop, stopped) = oneshot::channel::<()>();
    let server = axum::serve(listener, router(site)).with_graceful_shutdown(async {
        // A sender that is gone stops the server too.
        let _ = stopped.await;
    });
    let serving = tokio::spawn(server.into_future());
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = has_ended => {}
    }
    drop(stop);
    // A client that keeps its connection open does not keep the process alive.
    let _ = tokio::time::timeout(Duration::from_secs(1), serving).await;
    driver.map_or(Ok(()), Driver::stop)
}

/// Binds the address given on the command line.
async fn bind(address: &str) -> anyhow::Result<TcpListener> {
    let everywhere = address.strip_prefix(':').map(|port| format!("0.0.0.0:{port}"));
    let given = everywhere.as_deref().unwrap_or(address);
    let port = given.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    if !matches!(port, Some(Ok(_))) {
        bail!("{address} is no address to listen on; write --web.listen-address HOST:PORT");
    }
    match TcpListener::bind(given).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => bail!(
            "{address} is in use; choose another with --web.listen-address (port 0 picks one)"
        ),
        Err(error) => Err(error).with_context(|| {
            format!("cannot listen on {address}; choose another with --web.listen-address")
        }),
    }
}

/// What the embedded replica is, in words.
fn embedded(args: &Args) -> String {
    let replica = &args.replica;
    let (workers, arrangements) = (replica.workers, replica.arrangements);
    let round = spelled(replica.round);
    format!(
        "embedded replica, {workers} + {workers} workers, {arrangements} arrangements, a round \
         every {round}"
    )
}

/// Which processes there are at the beginning, in words.
fn attached(watch: &Watch) -> String {
    let said = |(_, segment): &(String, Segment)| {
        let process = segment.process();
        let points = segment.count().unwrap_or_default();
        let ended = if segment.is_up() { "" } else { ", ended" };
        format!("{}, pid {}, {points} points{ended}", plain(&process.name), process.pid)
    };
    let said: Vec<_> = watch.segments().iter().map(said).collect();
    match &said[..] {
        [] => "no process attached yet".to_owned(),
        [one] => format!("1 process attached ({one})"),
        several => format!("{} processes attached ({})", several.len(), several.join("; ")),
    }
}

/// Says what is watched, and where it is served.
fn announce(args: &Args, address: SocketAddr, watched: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let (version, path) = (env!("CARGO_PKG_VERSION"), &args.telemetry_path);
    writeln!(out, "holdgap-exporter {version}: {watched}")?;
    writeln!(out, "serving http://{address}/  (metrics at {path})")?;
    out.flush()
}
