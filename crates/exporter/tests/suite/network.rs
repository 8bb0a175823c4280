use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Exporter, PATIENCE, Scratch, Secured, Stage, hold, output};

fn small(args: &[&str]) -> Exporter {
    let own = ["--replica.workers", "1", "--replica.arrangements", "1"];
    Exporter::start(&[&own, args].concat())
}

fn connect(exporter: &Exporter) -> TcpStream {
    let address = exporter.url.split_once("://").unwrap().1;
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// What is answered to bytes, until the other side ends.
fn answer(exporter: &Exporter, bytes: &[u8]) -> String {
    let mut stream = connect(exporter);
    // It may hang up in the middle.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Whether the other side has ended, without waiting for it.
fn has_ended(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    match stream.read(&mut [0; 1024]) {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

#[test]
fn five_hundred_idle_and_slow_connections_keep_no_scrape_waiting_and_are_ended() {
    let exporter = small(&[]);
    exporter.wait_until_ready();
    let mut lingering: Vec<_> = (0..500).map(|_| connect(&exporter)).collect();
    let head = b"GET /metrics HTTP/1.1\r\nHost: somebody\r\n";
    for byte in head {
        // Every other one says a byte now and then, and never all.
        for stream in lingering.iter_mut().step_by(2) {
            let _ = stream.write_all(&[*byte]);
        }
        let asked = Instant::now();
        assert_eq!(exporter.get("/metrics").status, 200);
        // Far less than it takes until the others are ended.
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    }
    let deadline = Instant::now() + PATIENCE;
    while !lingering.iter().all(has_ended) {
        assert!(Instant::now() < deadline, "they may stay");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn more_connections_than_are_allowed_wait_and_are_served_when_others_have_gone() {
    let exporter = small(&["--web.max-connections", "3"]);
    let taken: Vec<_> = (0..3).map(|_| connect(&exporter)).collect();
    let mut last = connect(&exporter);
    last.write_all(b"GET /-/healthy HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").unwrap();
    // The kernel has it; the exporter takes it when one of the others has gone.
    last.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let waiting = last.read(&mut [0; 16]).unwrap_err().kind();
    assert!(matches!(waiting, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{waiting}");
    drop(taken);
    last.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = String::new();
    last.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("healthy\n"), "{answer}");
}

#[test]
fn a_head_that_is_too_long_or_malformed_is_refused_and_harms_only_itself() {
    let exporter = small(&[]);
    let long = format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "a".repeat(100_000));
    let path = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(100_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(500));
    for (bytes, status) in [
        (long.as_bytes(), "HTTP/1.1 431 "),
        (path.as_bytes(), "HTTP/1.1 4"),
        (many.as_bytes(), "HTTP/1.1 431 "),
        (b"GET / HTTP/1.1\r\nHost h\r\n\r\n", "HTTP/1.1 400 "),
        (b"G\x01T / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "HTTP/1.1 400 "),
        (b"GET /\xff HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "HTTP/1.1 4"),
        (
            b"GET /../../etc/passwd HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
            "HTTP/1.1 404 ",
        ),
        (b"OPTIONS * HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "HTTP/1.1 404 "),
        (b"OPTIONS /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "HTTP/1.1 405 "),
        (b"TRACE / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "HTTP/1.1 405 "),
    ] {
        let answer = answer(&exporter, bytes);
        let asked = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]);
        // Where it reads no further, the connection may break before the answer is through.
        assert!(answer.starts_with(status) || answer.is_empty(), "{asked}: {answer}");
        assert!(!answer.is_empty() || bytes.len() > 10_000, "{asked}");
    }
    // A body that nobody asked for is not taken in.
    let body = b"GET /-/healthy HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000000\r\n\r\n";
    let mut stream = connect(&exporter);
    stream.write_all(body).unwrap();
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
    for query in ["?limit=0", "?limit=99999", "?offset=-1", "?limit=%00", "?limit[]=1"] {
        assert_eq!(exporter.get(&format!("/api/v1/report{query}")).status, 400, "{query}");
    }
    assert_eq!(exporter.get("/metrics").status, 200);
}

#[test]
fn at_most_so_many_pages_are_kept_up_to_date_and_the_next_is_told_so() {
    let exporter = small(&[]);
    let open = || {
        let mut stream = connect(&exporter);
        stream.write_all(b"GET /api/v1/events HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        let mut lines = BufReader::new(stream).lines();
        let status = lines.next().unwrap().unwrap();
        (status, lines)
    };
    let mut pages: Vec<_> = (0..64).map(|_| open()).collect();
    assert!(pages.iter().all(|(status, _)| status.starts_with("HTTP/1.1 200 ")));
    let data = pages[63].1.find_map(|line| line.unwrap().strip_prefix("data: ").map(str::to_owned));
    let status: Value = serde_json::from_str(&data.unwrap()).unwrap();
    assert!(status["published"].is_u64(), "{status}");
    assert!(open().0.starts_with("HTTP/1.1 503 "));
    assert_eq!(exporter.get("/metrics").status, 200);
    drop(pages);
    let deadline = Instant::now() + PATIENCE;
    while !open().0.starts_with("HTTP/1.1 200 ") {
        assert!(Instant::now() < deadline, "places are not given back");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn tls_and_a_password_are_asked_for_where_the_file_asks_for_them() {
    let secured = Secured::new();
    let mut exporter = secured.exporter(&[]);
    assert!(exporter.url.starts_with("https://127.0.0.1:"), "{}", exporter.url);
    // Whoever connects and does not even begin to agree on TLS keeps nobody waiting.
    let _idle: Vec<_> = (0..100).map(|_| connect(&exporter)).collect();
    for path in ["/metrics", "/", "/-/healthy", "/api/v1/report", "/status.js", "/nothing"] {
        let answer = exporter.get(path);
        assert_eq!(answer.status, if path == "/nothing" { 404 } else { 200 }, "{path}");
    }
    let right = exporter.authorization.take();
    let wrong = [None, Some("Basic cHJvbWV0aGV1czp3cm9uZw=="), Some("Basic ?"), Some("Bearer x")];
    for authorization in wrong {
        exporter.authorization = authorization.map(ToOwned::to_owned);
        for path in ["/metrics", "/", "/-/healthy", "/nothing"] {
            let answer = exporter.get(path);
            assert_eq!((answer.status, &*answer.body), (401, "unauthorized\n"), "{path}");
            assert!(answer.headers.contains("Basic realm="), "{}", answer.headers);
        }
    }
    exporter.authorization = right;
    // Who does not speak TLS learns nothing.
    let said = answer(&exporter, b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(!said.contains("HTTP/1.1 200"), "{said}");

    // A certificate that is renewed is the one that the next connection sees.
    secured.renew();
    let deadline = Instant::now() + PATIENCE;
    while !secured.again(&exporter).try_get("/metrics").is_ok_and(|answer| answer.status == 200) {
        assert!(Instant::now() < deadline, "the old certificate stays");
        std::thread::sleep(Duration::from_millis(100));
    }
    // What cannot be used leaves what is in force, and is said.
    let web = secured.web();
    std::fs::write(&web, "basic_auth_users:\n  me: secret\n").unwrap();
    std::thread::sleep(Duration::from_millis(1_200));
    let after = secured.again(&exporter);
    assert_eq!(after.get("/metrics").status, 200);
    let log = exporter.log_at_end();
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(lines[0].contains("INFO") && lines[0].contains("read anew"), "{log}");
    assert!(lines[1].contains("ERROR") && lines[1].contains("no bcrypt hash"), "{log}");
}

#[test]
fn a_file_that_asks_for_what_cannot_be_is_refused_in_one_line_before_anything_is_served() {
    let scratch = Scratch::new();
    std::fs::create_dir(&scratch.0).unwrap();
    let web = scratch.0.join("web.yml");
    let web = web.to_str().unwrap();
    for (text, said) in [
        ("tls_server_config: {cert_file: nowhere.pem, key_file: nowhere.key}", "nowhere"),
        ("basic_auth_users: {me: secret}", "no bcrypt hash"),
        ("nonsense", "web.yml"),
        ("tls_server: {}", "unknown field `tls_server`"),
    ] {
        std::fs::write(web, text).unwrap();
        let output = output(&["--web.listen-address", "127.0.0.1:0", "--web.config.file", web]);
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), line.lines().count()), (Some(1), 1), "{line}");
        assert!(line.starts_with("error: --web.config.file: ") && line.contains(said), "{line}");
        assert!(output.stdout.is_empty());
    }
    let output = output(&["--web.config.file", "/nowhere.yml"]);
    let line = String::from_utf8(output.stderr).unwrap();
    assert!(line.contains("/nowhere.yml") && line.lines().count() == 1, "{line}");
}

/// A name with whatever a file, a terminal, a page or a query might take for its own.
const HOSTILE: &str = "a\"b\\n\n'{}<script>\u{1b}[31m\u{7f}é";

#[test]
fn a_name_with_quotes_newlines_and_markup_is_escaped_in_every_output() {
    let scratch = Scratch::new();
    let stage = Stage::new(&scratch, HOSTILE);
    let _point = stage.hold(HOSTILE, HOSTILE, HOSTILE, 5_000);
    let exporter = scratch.exporter(&[]);
    exporter.wait("shared_arrangement_holder_age_seconds", |ages| !ages.is_empty());

    let metrics = exporter.get("/metrics").body;
    let escaped = HOSTILE.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"");
    for label in ["id", "name", "holder"] {
        assert!(metrics.contains(&format!("{label}=\"{escaped}\"")), "{metrics}");
    }
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let said = child.wait_with_output().unwrap().stderr;
    let said = String::from_utf8_lossy(&said);
    assert!(!said.contains("error"), "{said}");

    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        let status: Value = serde_json::from_str(&exporter.get("/api/v1/status").body).unwrap();
        if !status["worst"][0].is_null() {
            break status["worst"][0].clone();
        }
        assert!(Instant::now() < deadline, "{status}");
        std::thread::sleep(Duration::from_millis(50));
    };
    let report: Value = serde_json::from_str(&exporter.get("/api/v1/report").body).unwrap();
    let inspected = output(&["inspect", "--json", scratch.text()]).stdout;
    let inspected: Value = serde_json::from_slice(&inspected).unwrap();
    for point in [&status, &report["points"][0], &inspected["processes"][0]["points"][0]] {
        assert_eq!((&point["id"], &point["name"]), (&HOSTILE.into(), &HOSTILE.into()));
        assert_eq!(point["holders"][0]["label"], HOSTILE);
    }
    for args in [&["inspect", scratch.text()][..], &["top", "--once", &exporter.url]] {
        let text = String::from_utf8(output(args).stdout).unwrap();
        assert!(text.contains("<script>\u{fffd}[31m"), "{text}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert!(text.lines().filter(|line| line.contains("<script>")).count() <= 2, "{text}");
    }
    assert!(!exporter.banner.chars().any(char::is_control), "{:?}", exporter.banner);
}

#[test]
fn a_name_of_ten_thousand_bytes_is_cut_in_a_scrape() {
    let registry = holdgap::Registry::new();
    let long = "é\"".repeat(5_000);
    let worker = registry.runtime(holdgap::Role::Interactive).worker(0);
    let _point = hold(&worker, &long, &long, &long, 400);
    let metrics = holdgap_exporter::scrape(&registry, &registry.scraper(), 10);
    let sample = metrics.lines().find(|line| line.contains("_worst_hold_gap_ms{")).unwrap();
    assert!(sample.ends_with("} 400"), "{sample}");
    let longest = metrics.lines().map(str::len).max().unwrap();
    assert!(longest < 4_000, "{longest}");
    assert!(metrics.contains("_holder_age_seconds{"), "{metrics}");
}
