use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::{Exporter, PATIENCE};

fn small() -> Exporter {
    Exporter::start(&["--replica.workers", "1", "--replica.arrangements", "1"])
}

#[test]
fn each_path_has_its_answer() {
    let exporter = small();
    exporter.wait_until_ready();
    let metrics = exporter.get("/metrics");
    assert_eq!(metrics.status, 200);
    assert_eq!(metrics.content_type, "text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(exporter.get("/-/healthy").body, "healthy\n");
    assert_eq!(exporter.get("/-/ready").body, "ready\n");
    let page = exporter.get("/");
    assert_eq!((page.status, &*page.content_type), (200, "text/html; charset=utf-8"));
    assert!(page.headers.contains("default-src 'none'"), "{}", page.headers);
    for link in ["/metrics", "/-/healthy", "/-/ready"] {
        assert!(page.body.contains(&format!("href=\"{link}\"")), "{}", page.body);
    }
}

#[test]
fn unknown_paths_and_wrong_methods_are_answered_as_http_has_them() {
    let exporter = small();
    assert_eq!(exporter.get("/nothing").status, 404);
    assert_eq!(exporter.get("/metrics/").status, 404);
    let refused = exporter.ask("POST", "/metrics");
    assert_eq!(refused.status, 405);
    assert!(refused.headers.contains("GET,HEAD"), "{}", refused.headers);
    assert_eq!(exporter.ask("DELETE", "/").status, 405);
    let head = exporter.ask("HEAD", "/metrics");
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn openmetrics_and_gzip_are_served_to_those_who_ask_for_them() {
    let exporter = small();
    exporter.wait_until_ready();
    let accept =
        "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    let open = exporter.ask_with("GET", "/metrics", &[("Accept", accept)]);
    assert_eq!(open.content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert!(open.body.ends_with("\n# EOF\n"), "{}", open.body);
    assert!(open.body.contains("\n# TYPE holdgap_exporter_reports counter\n"), "{}", open.body);
    assert!(open.body.contains("\nholdgap_exporter_reports_total "), "{}", open.body);
    let plain = exporter.get("/metrics");
    assert!(plain.headers.contains("accept-encoding"), "caches are told: {}", plain.headers);

    let zipped = exporter.ask_with("GET", "/metrics", &[("Accept-Encoding", "gzip")]);
    assert!(zipped.headers.contains(r#""content-encoding": "gzip""#), "{}", zipped.headers);
    assert!(zipped.bytes.len() * 4 < plain.bytes.len(), "{}", zipped.bytes.len());
    let mut gzip = std::process::Command::new("gzip");
    let gzip =
        gzip.arg("-dc").stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = gzip.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&zipped.bytes).unwrap();
    let unzipped = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let names = |text: &str| -> std::collections::BTreeSet<String> {
        text.lines().filter(|line| line.starts_with("# TYPE ")).map(ToOwned::to_owned).collect()
    };
    assert_eq!(names(&unzipped), names(&plain.body));
}

#[test]
fn the_metrics_may_live_under_another_path() {
    let exporter = Exporter::start(&[
        "--replica.workers",
        "1",
        "--replica.arrangements",
        "1",
        "--web.telemetry-path",
        "/gauges",
    ]);
    assert_eq!(exporter.get("/gauges").status, 200);
    assert_eq!(exporter.get("/metrics").status, 404);
    assert!(exporter.get("/").body.contains("href=\"/gauges\""));
}

#[test]
fn a_request_that_is_none_harms_only_itself() {
    let exporter = small();
    let address = exporter.url.trim_start_matches("http://");
    for request in [&b"\0\xff\0\r\n\r\n"[..], b"GET / HTTP/9.9\r\n\r\n", &[b'a'; 100_000]] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // It may hang up in the middle.
        let _ = stream.write_all(request);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(exporter.get("/metrics").status, 200);
}
