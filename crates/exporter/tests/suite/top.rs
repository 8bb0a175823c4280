use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Exporter, PATIENCE, Scratch, Stage, output};

fn once(args: &[&str]) -> Vec<String> {
    let output = output(&[&["top", "--once"], args].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{text}");
    text.lines().map(ToOwned::to_owned).collect()
}

#[test]
fn a_table_for_scripts_names_who_holds_of_an_exporter_and_of_a_folder_alike() {
    let scratch = Scratch::new();
    let stage = Stage::new(&scratch, "app");
    let _free: Vec<_> =
        (0..3).map(|n| stage.worker.publish::<u64>(format!("free{n}"), "free")).collect();
    let held = stage.hold("u42", "orders", "report\u{1b}[2J of\nnight", 252_000);
    let exporter = scratch.exporter(&[]);
    let deadline = Instant::now() + PATIENCE;
    // The exporter looks once a second.
    while once(&[&exporter.url]).len() < 3 {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(100));
    }
    for lines in [once(&[&exporter.url]), once(&["--attach", scratch.text()])] {
        assert!(lines[0].starts_with("1 of 4 points held, worst gap 4m 12s, for "), "{lines:?}");
        assert!(lines[0].ends_with("(maintenance, worker 0)"), "{lines:?}");
        assert!(lines[1].starts_with("ARRANGEMENT"), "{lines:?}");
        assert!(lines[2].starts_with("u42 orders   maintenance  0       4m 12s"), "{lines:?}");
        assert!(lines[2].contains("reader report\u{fffd}[2J of\u{fffd}night, "), "{lines:?}");
        assert_eq!(lines.len(), 3, "{lines:?}");
    }
    drop(held);
    assert_eq!(once(&["--attach", scratch.text()]), ["all clear: none of 3 points is held"]);
}

#[test]
fn nobody_there_is_said_in_one_line_that_says_what_to_do() {
    for (args, said) in [
        (&["top", "--once", "http://127.0.0.1:1"][..], "use --attach DIR"),
        (&["top", "--once", "127.0.0.1:1"], "use --attach DIR"),
        (&["top", "--once", "--attach", "/nowhere"], "/nowhere: no such folder"),
        (&["top"], ""),
    ] {
        let output = output(args);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
        assert!(text.starts_with("error: ") && text.contains(said), "{text}");
    }
    let scratch = Scratch::new();
    let stage = Stage::new(&scratch, "app");
    let output = output(&["top", "--attach", scratch.text()]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
    assert!(text.contains("no terminal; use --once"), "{text}");
    drop(stage);
}

/// What is written to a terminal, in its order: a move to another place reads as a space.
fn written(bytes: &str) -> String {
    let mut pieces = bytes.split("\u{1b}[");
    let first = pieces.next().unwrap_or("").to_owned();
    pieces.fold(first, |mut text, piece| {
        let end = piece.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
        text += if piece[end..].starts_with('H') { " " } else { "" };
        text + piece.get(end + 1..).unwrap_or("")
    })
}

/// On a terminal of its own, which `script` makes: it shows, follows the keys, and ends.
#[test]
fn the_live_view_names_the_holder_in_a_terminal_and_ends_by_a_key() {
    let exporter = Exporter::start(&[
        "--replica.workers",
        "1",
        "--replica.arrangements",
        "2",
        "--replica.slow-reader",
        "60s",
    ]);
    exporter.wait("shared_arrangement_worst_hold_gap_ms", |gaps| {
        gaps.iter().any(|(labels, gap)| labels.contains("u1") && *gap > 1_500.0)
    });
    let program = env!("CARGO_BIN_EXE_holdgap-exporter");
    let line = format!("stty rows 30 cols 150; {program} top {}", exporter.url);
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm-256color");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut keys = child.stdin.take().unwrap();
    let (said, read) = std::sync::mpsc::channel();
    let mut out = child.stdout.take().unwrap();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = out.read(&mut bytes) {
            let _ = said.send(String::from_utf8_lossy(&bytes[..count]).into_owned());
        }
    });
    let mut bytes = String::new();
    let deadline = Instant::now() + PATIENCE;
    let mut wait = |what: &str| {
        while !written(&bytes).contains(what) {
            let left = deadline.saturating_duration_since(Instant::now());
            match read.recv_timeout(left) {
                Ok(more) => bytes += &more,
                Err(_) => panic!("{what:?} does not come in {bytes:?}"),
            }
        }
    };
    wait("points held, worst gap");
    wait("reader slow reader of u1");
    keys.write_all(b"j").unwrap();
    wait("requested {");
    keys.write_all(b"q").unwrap();
    assert!(child.wait().unwrap().success());
}
