use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::harness;

/// Pieces of a web configuration, and what is near them.
fn config() -> impl Strategy<Value = Vec<u8>> {
    let word = select(vec![
        "tls_server_config:",
        "basic_auth_users:",
        "http_server_config:",
        "headers:",
        "cert_file:",
        "key_file:",
        "client_auth_type:",
        "min_version:",
        "max_version:",
        "cipher_suites:",
        "curve_preferences:",
        "prefer_server_cipher_suites:",
        "TLS12",
        "TLS13",
        "NoClientCert",
        "RequireAndVerifyClientCert",
        "true",
        "nowhere",
        "[",
        "]",
        "{",
        "}",
        ",",
        "-",
        "\n",
        "\n  ",
        "\n    ",
        " ",
        ":",
        "\"",
        "'",
        "&a",
        "*a",
        "!!binary",
        "|",
        ">",
        "#",
        "\t",
        "\0",
        "é",
        "$2b$10$.vGA1O9wmRjrwAVXD98HNOgsNpDczlqm3Jq7KnEd1rVAGv3Fykk1a",
        "X-Frame-Options: DENY",
    ]);
    prop_oneof![
        4 => vec(word, 0..30).prop_map(|words| words.concat().into_bytes()),
        1 => vec(any::<u8>(), 0..200),
    ]
}

/// Pieces of a request, and what is near them.
fn connection() -> impl Strategy<Value = Vec<u8>> {
    let word = select(vec![
        "GET ",
        "HEAD ",
        "POST ",
        "OPTIONS ",
        "/",
        "/metrics",
        "/api/v1/report",
        "/api/v1/events",
        "/api/v1/status",
        "/-/ready",
        "?offset=1&limit=3",
        "?limit=",
        "%00",
        "%",
        "*",
        "http://h/",
        " HTTP/1.1",
        " HTTP/1.0",
        " HTTP/2.0",
        "\r\n",
        "\r\n\r\n",
        "\n",
        "Host: h",
        "Accept: ",
        "application/openmetrics-text",
        ";q=0.5",
        ",",
        "Accept-Encoding: gzip",
        "Connection: close",
        "Content-Length: 5",
        "Content-Length: 99999999999999999999",
        "Transfer-Encoding: chunked",
        "Expect: 100-continue",
        "Authorization: Basic ?",
        "Upgrade: h2c",
        "Range: bytes=0-1",
        "a",
        "\0",
        "\u{7f}",
        "é",
        ":",
        " ",
    ]);
    let line = (
        select(vec!["GET", "HEAD", "POST", "PUT"]),
        select(vec!["/", "/metrics", "/api/v1/report?limit=2", "/nothing", "/-/healthy", "*"]),
    );
    let line = line.prop_map(|(method, path)| format!("{method} {path} HTTP/1.1\r\nHost: h\r\n"));
    prop_oneof![
        3 => vec(word.clone(), 0..30).prop_map(|words| words.concat().into_bytes()),
        3 => (line, vec(word, 0..12)).prop_map(|(line, words)| [line, words.concat()].concat().into_bytes()),
        1 => vec(any::<u8>(), 0..400),
    ]
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(3_000))]

    #[test]
    fn whatever_a_web_configuration_says_it_is_taken_or_refused_in_one_line(data in config()) {
        harness::config(&data);
    }
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn whatever_comes_over_a_connection_the_answer_is_one_that_http_has(data in connection()) {
        harness::connection(&data);
    }
}

#[test]
fn the_harness_reaches_what_it_is_for() {
    assert!(harness::config(b"basic_auth_users: {}"));
    assert!(!harness::config(b"basic_auth_users: {me: secret}"));
    let asked = |text: &str| harness::connection(text.as_bytes());
    assert_eq!(asked("GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n"), Some(200));
    assert_eq!(asked("GET /api/v1/events HTTP/1.1\r\nHost: h\r\n\r\n"), Some(200));
    assert_eq!(asked("GET /nothing HTTP/1.1\r\nHost: h\r\n\r\n"), Some(404));
    assert_eq!(asked("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"), Some(405));
    assert_eq!(asked("nonsense\r\n\r\n"), Some(400));
    assert_eq!(asked(""), None);
}
