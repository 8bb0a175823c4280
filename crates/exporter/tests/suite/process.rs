use std::net::TcpListener;

use crate::support::{Exporter, output};

/// The one line that it says on standard error.
fn complaint(args: &[&str], code: i32) -> String {
    let output = output(args);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(output.stdout.is_empty());
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("error: "), "{text}");
    text
}

#[test]
fn a_port_in_use_is_said_in_one_line_that_says_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let text = complaint(&["--web.listen-address", &address], 1);
    assert!(text.contains(&address) && text.contains("port 0 picks one"), "{text}");
}

#[test]
fn a_wrong_flag_or_value_is_said_in_one_line() {
    for args in [
        &["--nonsense"][..],
        &["--replica.workers", "0"],
        &["--replica.workers", "many"],
        &["--replica.arrangements", "-1"],
        &["--replica.round", "soon"],
        &["--replica.round", "0s"],
        &["--replica.slow-reader", "30"],
        &["--web.telemetry-path", "metrics"],
        &["--web.telemetry-path", "/{x}"],
        &["--web.telemetry-path", "/-/ready"],
        &["stray"],
    ] {
        let text = complaint(args, 2);
        assert!(text.contains("--help"), "{text}");
    }
    for address in ["nowhere", "127.0.0.1", "127.0.0.1:99999", "127.0.0.1:x"] {
        let text = complaint(&["--web.listen-address", address], 1);
        assert!(text.contains("--web.listen-address HOST:PORT"), "{text}");
    }
}

#[test]
fn help_explains_each_flag_and_version_is_the_package_s() {
    let help = output(&["--help"]);
    assert!(help.status.success());
    let text = String::from_utf8(help.stdout).unwrap();
    for flag in [
        "--web.listen-address",
        "--web.telemetry-path",
        "--replica.workers",
        "--replica.arrangements",
        "--replica.round",
        "--replica.slow-reader",
        "--attach",
        "--attach.keep",
        "--metrics.worst",
        "--web.config.file",
        "--web.max-connections",
        "--log.level",
        "--log.format",
        "inspect",
        "top",
        "completions",
        "man",
    ] {
        assert!(text.contains(flag), "{text}");
    }
    let version = String::from_utf8(output(&["--version"]).stdout).unwrap();
    assert_eq!(version.trim(), concat!("holdgap-exporter ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn it_says_what_it_watches_and_ends_cleanly_by_signals() {
    for signal in ["INT", "TERM"] {
        let args = ["--replica.workers", "2", "--replica.arrangements", "3"];
        let exporter = Exporter::start(&args);
        let expected = "embedded replica, 2 + 2 workers, 3 arrangements, a round every 100 ms";
        assert!(exporter.banner.ends_with(expected), "{}", exporter.banner);
        // A client that keeps its connection open does not keep the process.
        let address = exporter.url.trim_start_matches("http://").to_owned();
        let _idle = std::net::TcpStream::connect(address).unwrap();
        assert_eq!(exporter.end_by(signal), Some(0), "{signal}");
    }
}
