use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use holdgap::{FrontierPair, Frontiers, HoldKind, Holder, Holders, Point, Registry, Role, Worker};
use holdgap_segment::{Attachment, SegmentOptions};
use timely::progress::Antichain;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdgap-exporter"));
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs the exporter to its end.
pub(crate) fn output(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

/// The program of an example, built if it is not.
pub(crate) fn example(name: &str) -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    let own = Path::new(env!("CARGO_BIN_EXE_holdgap-exporter"));
    let folder = own.parent().unwrap();
    let release = folder.ends_with("release").then_some("--release");
    // With the features that the whole workspace has: those that the tests are built with.
    cargo.args(["build", "--quiet", "--workspace", "--example", name]).args(release);
    cargo.arg("--target-dir").arg(folder.parent().unwrap()).env_remove("CARGO_TARGET_DIR");
    assert!(cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap().success());
    folder.join("examples").join(name)
}

/// An exporter that serves, ended with this value.
pub(crate) struct Exporter {
    pub(crate) child: Child,
    pub(crate) banner: String,
    pub(crate) url: String,
    agent: ureq::Agent,
    /// The name and the password that it is asked with.
    pub(crate) authorization: Option<String>,
}

/// A client that trusts whom `tls` says.
fn agent(tls: TlsConfig) -> ureq::Agent {
    let config = ureq::Agent::config_builder().http_status_as_error(false).tls_config(tls);
    config.timeout_global(Some(PATIENCE)).build().into()
}

fn ask(
    agent: &ureq::Agent,
    method: &str,
    url: &str,
    authorization: Option<&str>,
    headers: &[(&str, &str)],
) -> Result<Answer, ureq::Error> {
    let mut request = ureq::http::Request::builder().method(method).uri(url);
    if let Some(authorization) = authorization {
        request = request.header("Authorization", authorization);
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut response = agent.run(request.body(()).unwrap())?;
    let content_type = response.headers().get("content-type");
    let content_type = content_type.map_or("", |value| value.to_str().unwrap()).to_owned();
    let bytes = response.body_mut().read_to_vec()?;
    Ok(Answer {
        status: response.status().as_u16(),
        content_type,
        headers: format!("{:?}", response.headers()),
        body: String::from_utf8_lossy(&bytes).into_owned(),
        bytes,
    })
}

/// What an exporter answered.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) headers: String,
    pub(crate) body: String,
    pub(crate) bytes: Vec<u8>,
}

impl Exporter {
    /// Starts one on a free port, with a small replica and what else `args` say.
    pub(crate) fn start(args: &[&str]) -> Self {
        let small = ["--web.listen-address", "127.0.0.1:0", "--replica.round", "100ms"];
        Self::start_as_is(&[&small, args].concat())
    }

    /// Starts one with the arguments given.
    pub(crate) fn start_as_is(args: &[&str]) -> Self {
        let exporter = Self::spawn(args, TlsConfig::default(), None);
        assert!(exporter.url.starts_with("http://127.0.0.1:"), "{}", exporter.url);
        exporter
    }

    /// Starts one that listens on every interface.
    pub(crate) fn start_everywhere(args: &[&str]) -> Self {
        Self::spawn(args, TlsConfig::default(), None)
    }

    fn spawn(args: &[&str], tls: TlsConfig, authorization: Option<String>) -> Self {
        let mut command = command(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let banner = lines.next().unwrap().unwrap();
        let serving = lines.next().unwrap().unwrap();
        let url = serving.split_whitespace().nth(1).unwrap().trim_end_matches('/').to_owned();
        Exporter { child, banner, url, agent: agent(tls), authorization }
    }

    /// Ends it, and returns what it said on standard error.
    pub(crate) fn log_at_end(&mut self) -> String {
        let _ = self.child.kill();
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        log
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path)
    }

    pub(crate) fn ask(&self, method: &str, path: &str) -> Answer {
        self.ask_with(method, path, &[])
    }

    /// Asks with headers of the caller's own, too.
    pub(crate) fn ask_with(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let authorization = self.authorization.as_deref();
        ask(&self.agent, method, &format!("{}{path}", self.url), authorization, headers).unwrap()
    }

    /// The values of one series, by its labels as they are written.
    pub(crate) fn values(&self, series: &str) -> Vec<(String, f64)> {
        let name = format!("mz_compute_{series}{{");
        let metrics = self.get("/metrics").body;
        let samples = metrics.lines().filter_map(|line| line.strip_prefix(&name));
        samples
            .map(|sample| {
                let (labels, value) = sample.rsplit_once("} ").unwrap();
                (labels.to_owned(), value.parse().unwrap())
            })
            .collect()
    }

    /// Waits until `is_so` of the values of one series.
    pub(crate) fn wait(&self, series: &str, is_so: impl Fn(&[(String, f64)]) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let values = self.values(series);
            if is_so(&values) {
                return;
            }
            assert!(Instant::now() < deadline, "{series} stays at {values:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn wait_until_ready(&self) {
        let deadline = Instant::now() + PATIENCE;
        while self.get("/-/ready").status != 200 {
            assert!(Instant::now() < deadline, "{}", self.get("/-/ready").body);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a signal by name, and waits for the end. Returns the exit code, if there is one.
    pub(crate) fn end_by(mut self, signal: &str) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "it does not end by {signal}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder in memory, removed with this value.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Scratch(format!("/dev/shm/holdgap-attach-{}-{number}", std::process::id()).into())
    }

    /// One on disk, for what is large.
    pub(crate) fn on_disk() -> Self {
        let mut scratch = Self::new();
        let name = scratch.0.file_name().unwrap();
        scratch.0 = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        scratch
    }

    pub(crate) fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// Starts an example that is shown here, and waits until it is.
    pub(crate) fn run(&self, program: &Path, args: &[&str]) -> Running {
        let before = self.files();
        let mut command = Command::new(program);
        command.args(args).env("HOLDGAP_SEGMENT_DIR", &self.0);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let running = Running(child);
        let deadline = Instant::now() + PATIENCE;
        while self.files() == before {
            assert!(Instant::now() < deadline, "it has no segment");
            std::thread::sleep(Duration::from_millis(10));
        }
        running
    }

    pub(crate) fn files(&self) -> usize {
        let files = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        files.filter(|file| file.path().extension().is_some_and(|e| e == "holdgap")).count()
    }

    pub(crate) fn exporter(&self, args: &[&str]) -> Exporter {
        let own = ["--web.listen-address", "127.0.0.1:0", "--attach", self.text()];
        Exporter::start_as_is(&[&own, args].concat())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process of the test's own, killed with this value.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Files that ask for TLS and a password, removed with this value.
pub(crate) struct Secured {
    folder: Scratch,
}

impl Secured {
    pub(crate) const PASSWORD: &str = "open sesame";

    pub(crate) fn new() -> Self {
        let secured = Secured { folder: Scratch::new() };
        std::fs::create_dir(&secured.folder.0).unwrap();
        secured.renew();
        let hash = bcrypt::hash(Self::PASSWORD, 4).unwrap();
        let text = format!(
            "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n\
             basic_auth_users:\n  prometheus: {hash}\n"
        );
        std::fs::write(secured.web(), text).unwrap();
        secured
    }

    /// Writes another certificate, as those do who renew them.
    pub(crate) fn renew(&self) {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let write = |name: &str, text: String| {
            let (new, name) = (self.folder.0.join("new"), self.folder.0.join(name));
            std::fs::write(&new, text).unwrap();
            std::fs::rename(new, name).unwrap();
        };
        write("key.pem", made.signing_key.serialize_pem());
        write("cert.pem", made.cert.pem());
    }

    /// The file that says who made the certificate: it itself.
    pub(crate) fn ca(&self) -> String {
        self.folder.0.join("cert.pem").display().to_string()
    }

    /// The file that the exporter is started with.
    pub(crate) fn web(&self) -> PathBuf {
        self.folder.0.join("web.yml")
    }

    /// Another client of the same exporter, which trusts the certificate there is now.
    pub(crate) fn again(&self, exporter: &Exporter) -> Client {
        let authorization = exporter.authorization.clone().unwrap();
        Client { agent: agent(self.tls()), url: exporter.url.clone(), authorization }
    }

    /// How a client knows the server by the certificate there is now.
    fn tls(&self) -> TlsConfig {
        let pem = std::fs::read(self.ca()).unwrap();
        let root = Certificate::from_pem(&pem).unwrap();
        TlsConfig::builder().root_certs(RootCerts::new_with_certs(&[root])).build()
    }

    /// Starts a small exporter that is asked as it wants to be asked.
    pub(crate) fn exporter(&self, args: &[&str]) -> Exporter {
        let web = self.web();
        let mut own = vec!["--web.listen-address", "127.0.0.1:0", "--replica.round", "100ms"];
        own.extend(["--replica.workers", "2", "--replica.arrangements", "3"]);
        own.extend(["--web.config.file", web.to_str().unwrap()]);
        let plain = format!("prometheus:{}", Self::PASSWORD);
        let authorization = format!("Basic {}", BASE64_STANDARD.encode(plain));
        Exporter::spawn(&[&own, args].concat(), self.tls(), Some(authorization))
    }
}

/// A client that comes anew.
pub(crate) struct Client {
    agent: ureq::Agent,
    url: String,
    authorization: String,
}

impl Client {
    pub(crate) fn try_get(&self, path: &str) -> Result<Answer, ureq::Error> {
        let url = format!("{}{path}", self.url);
        ask(&self.agent, "GET", &url, Some(&self.authorization), &[])
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.try_get(path).unwrap()
    }
}

/// A registry of the test's own process, shown in a folder: its points do what the test says.
pub(crate) struct Stage {
    pub(crate) worker: Worker,
    _shown: Attachment,
}

impl Stage {
    pub(crate) fn new(scratch: &Scratch, name: &str) -> Self {
        let registry = Registry::new();
        let (folder, name) = (Some(scratch.0.clone()), Some(name.to_owned()));
        let options = SegmentOptions { folder, name, ..SegmentOptions::default() };
        let shown = holdgap_segment::attach(&registry, options).unwrap();
        Stage { worker: registry.runtime(Role::Maintenance).worker(0), _shown: shown }
    }

    /// A point that `holder` holds back by `gap`.
    pub(crate) fn hold(&self, id: &str, name: &str, holder: &str, gap: u64) -> Point<u64> {
        hold(&self.worker, id, name, holder, gap)
    }
}

/// A point that `holder` holds back by `gap`.
pub(crate) fn hold(worker: &Worker, id: &str, name: &str, holder: &str, gap: u64) -> Point<u64> {
    let mut point = worker.publish(id, name);
    let kind = HoldKind::Reader;
    let named = vec![Holder { kind, label: holder.into(), registered: Duration::ZERO }];
    let holders = Holders { named, more: 0, kinds: [kind].into_iter().collect() }.into();
    let at = Antichain::from_elem;
    let pair = FrontierPair { requested: at(gap + 10), applied: at(10) };
    let holders = Some(&holders);
    point.publish(&Frontiers { holders, ..Frontiers::logical(&pair) });
    point
}
