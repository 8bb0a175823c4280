use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// Every Rust file below a folder, but for what is built.
fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

#[test]
fn every_path_that_the_architecture_names_exists() {
    let text = read("docs/architecture.md");
    let spans = text.split('`').skip(1).step_by(2);
    let paths = spans.filter(|span| span.contains('/') && !span.contains([' ', '<', ':']));
    let missing: Vec<_> = paths.filter(|path| !root().join(path).exists()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_test_that_a_guarantee_names_exists() {
    let text = read("docs/guarantees.md");
    let mut files = Vec::new();
    rust_files(&root().join("crates"), &mut files);
    let code: String = files.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let named = text.split('`').skip(1).step_by(2);
    let tests: Vec<_> = named.filter(|name| name.contains('_') && !name.contains('.')).collect();
    assert!(tests.len() > 30, "{tests:?}");
    let missing: Vec<_> = tests
        .into_iter()
        .filter(|name| *name != "compile_fail" && !code.contains(&format!("fn {name}(")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_module_opens_with_what_it_is() {
    let mut files = Vec::new();
    for folder in ["crates", "benches", "examples"] {
        rust_files(&root().join(folder), &mut files);
    }
    assert!(files.len() > 30);
    let silent: Vec<_> = files
        .iter()
        .filter(|path| !path.to_string_lossy().contains("/tests/suite/"))
        .filter(|path| !std::fs::read_to_string(path).unwrap().starts_with("//!"))
        .collect();
    assert!(silent.is_empty(), "{silent:?}");
}

#[test]
fn the_readme_has_the_two_commands() {
    let text = read("README.md");
    for command in ["$ cargo run --release -p holdgap-exporter\n", "$ bash .ci/test\n"] {
        assert!(text.contains(command), "{command}");
    }
}
