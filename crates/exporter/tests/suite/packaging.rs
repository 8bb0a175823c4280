use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::output;

fn deploy(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/deploy").join(file);
    std::fs::read_to_string(path).unwrap()
}

/// The command line of a unit or an image is one that the program takes.
fn check(args: &[&str]) {
    assert!(args.len() >= 4, "{args:?}");
    let output = output(&[args, &["--help"]].concat());
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn unit_and_image_start_it_with_flags_that_it_has() {
    let unit = deploy("holdgap-exporter.service");
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let words: Vec<_> = line.split(' ').collect();
    assert_eq!(words[0], "/usr/local/bin/holdgap-exporter");
    check(&words[1..]);
    let image = deploy("Containerfile");
    let line = image.lines().find_map(|line| line.strip_prefix("CMD ")).unwrap();
    let words: Vec<String> = serde_json::from_str(line).unwrap();
    check(&words.iter().map(|word| &**word).collect::<Vec<_>>());
    assert!(image.contains(r#"ENTRYPOINT ["/usr/local/bin/holdgap-exporter"]"#));
}

#[test]
fn the_manual_has_every_flag_and_the_completions_are_the_shell_s_own_language() {
    let manual = output(&["man"]);
    assert!(manual.status.success());
    let manual = String::from_utf8(manual.stdout).unwrap();
    assert!(manual.contains(".TH holdgap-exporter 1"), "{manual}");
    let help = String::from_utf8(output(&["--help"]).stdout).unwrap();
    let flags = help.split_whitespace().filter(|word| word.starts_with("--"));
    for flag in flags.map(|flag| flag.trim_end_matches([',', '.', ';'])) {
        assert!(manual.contains(&flag.replace('-', "\\-")), "{flag} is not in the manual");
    }
    for shell in ["bash", "zsh", "fish"] {
        let made = output(&["completions", shell]);
        assert!(made.status.success());
        assert!(String::from_utf8_lossy(&made.stdout).contains("web.listen-address"), "{shell}");
    }
    let script = output(&["completions", "bash"]).stdout;
    let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(&script).unwrap();
    assert!(bash.wait().unwrap().success());
}
