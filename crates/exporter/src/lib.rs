//! Serves holdgap's gauges over HTTP.
//!
//! [`run`] turns what went wrong into one line and an exit code; `serve` does the work: bind the
//! address, start what is to be watched, serve until told to stop. The program is `run` alone; this
//! is a library so that a bench can measure [`scrape`].

#![forbid(unsafe_code)]

mod args;
mod collect;
mod found;
#[doc(hidden)]
pub mod fuzzing;
mod inspect;
mod log;
mod openmetrics;
mod own;
mod pages;
mod replica;
mod server;
mod source;
mod status;
mod table;
mod text;
mod top;
mod watch;
mod web;
mod worst;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use holdgap::{Registry, Scraper};
use holdgap_segment::Segment;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, oneshot, watch as latest};
use tokio::time::MissedTickBehavior;

use crate::args::{Args, Command};
use crate::found::Found;
use crate::own::Own;
use crate::replica::{Driver, spelled};
use crate::server::{MOST_PAGES, Scraping, Site, router};
use crate::source::Source;
use crate::status::History;
use crate::text::plain;
use crate::watch::Watch;
use crate::web::connections;
use crate::web::live::Live;

/// What one scrape of `registry` answers, with series for the `most` worst arrangements of each worker.
pub fn scrape(registry: &Registry, scraper: &Scraper, most: usize) -> String {
    collect::render(&Found::of(registry, scraper, most), None)
}

/// Does what the command line says, and returns the exit code.
pub fn run() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    let result = match &args.command {
        Some(Command::Inspect(args)) => inspect::inspect(args),
        Some(Command::Top(args)) => top::top(args),
        Some(Command::Completions { shell }) => completions(*shell),
        Some(Command::Man) => manual(),
        None => {
            log::start(args.log_level, args.log_format);
            serve(&args)
        }
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

/// The shell's completions, on standard output.
fn completions(shell: clap_complete::Shell) -> anyhow::Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "holdgap-exporter", &mut text);
    Ok(io::stdout().write_all(&text)?)
}

/// The manual page, on standard output.
fn manual() -> anyhow::Result<()> {
    Ok(clap_mangen::Man::new(Args::command()).render(&mut io::stdout())?)
}

/// How many threads do what may take a while: looking at points, and checking passwords.
const ASIDE: usize = 8;

fn serve(args: &Args) -> anyhow::Result<()> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.max_blocking_threads(ASIDE).enable_all().build()?.block_on(serving(args))
}

async fn serving(args: &Args) -> anyhow::Result<()> {
    let live = Arc::new(Live::open(args.web_config.as_deref()).context("--web.config.file")?);
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
    let config = live.config();
    announce(args, address, &watched, config.tls.is_some())?;
    if !address.ip().is_loopback() && (config.tls.is_none() || config.users.is_empty()) {
        tracing::warn!(
            "every host that reaches {address} can read the names of arrangements and readers; ask \
             for TLS and authentication with --web.config.file, or serve on 127.0.0.1"
        );
    }

    let worst = usize::from(args.worst);
    let (latest, status) = latest::channel(None);
    let telemetry_path = args.telemetry_path.clone();
    let (own, scraping) = (Own::new(), Scraping::default());
    let pages = Arc::new(Semaphore::new(MOST_PAGES));
    let site = Arc::new(Site { source, worst, telemetry_path, own, status, scraping, pages });
    let sampler = sample(Arc::clone(&site), latest);
    let (stop, stopped) = latest::channel(false);
    let router = router(site, Arc::clone(&live));
    let most = usize::from(args.max_connections);
    let serving = tokio::spawn(connections::serve(listener, router, live, most, stopped));
    let sampling = tokio::spawn(sampler);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = has_ended => {}
    }
    sampling.abort();
    // Nobody is left to tell if the server has gone.
    let _ = stop.send(true);
    // A client that keeps its connection open does not keep the process alive.
    let _ = tokio::time::timeout(Duration::from_secs(1), serving).await;
    driver.map_or(Ok(()), Driver::stop)
}

/// Looks once a second, for the status page.
async fn sample(site: Arc<Site>, latest: latest::Sender<Option<Arc<str>>>) {
    const EVERY: Duration = Duration::from_secs(1);
    let history = Arc::new(Mutex::new(History::new()));
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let (site, history) = (Arc::clone(&site), Arc::clone(&history));
        let look = move || {
            let found = site.source.sample(site.worst);
            let mut history = history.lock().unwrap_or_else(PoisonError::into_inner);
            let status = history.take(found, site.worst);
            site.own.note_sample();
            serde_json::to_string(&status)
        };
        match tokio::task::spawn_blocking(look).await {
            Ok(Ok(status)) => drop(latest.send(Some(status.into()))),
            Ok(Err(error)) => tracing::error!("the status page cannot be made: {error}"),
            Err(error) => tracing::error!("looking at the points failed: {error}"),
        }
    }
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
fn announce(args: &Args, address: SocketAddr, watched: &str, tls: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let (version, path) = (env!("CARGO_PKG_VERSION"), &args.telemetry_path);
    let scheme = if tls { "https" } else { "http" };
    writeln!(out, "holdgap-exporter {version}: {watched}")?;
    writeln!(out, "serving {scheme}://{address}/  (metrics at {path})")?;
    out.flush()
}
