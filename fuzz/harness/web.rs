//! What fuzzing and a test on stable do with the bytes of a web configuration and of a connection.

use holdgap_exporter::fuzzing;

/// Reads a web configuration: it is one, or one line says why not.
pub(crate) fn config(data: &[u8]) -> bool {
    // A path would be read: of the machine that fuzzes, or from a device that never ends.
    let text = String::from_utf8_lossy(data).replace('/', "_");
    match fuzzing::web_config(&text) {
        Ok(()) => true,
        Err(why) => {
            assert!(!why.is_empty() && !why.contains('\n'), "{why:?}");
            false
        }
    }
}

/// Serves a connection on which these bytes come: every answer is one of HTTP/1.1 that the paths may
/// give. Returns its status, if there is one.
pub(crate) fn connection(data: &[u8]) -> Option<u16> {
    let answer = fuzzing::connection(data);
    if answer.is_empty() {
        return None;
    }
    let line = answer.split(|byte| *byte == b'\r').next().expect("there is a first piece");
    let line = std::str::from_utf8(line).expect("a status line");
    let version = line.strip_prefix("HTTP/1.1 ").or_else(|| line.strip_prefix("HTTP/1.0 "));
    let status = version.and_then(|rest| rest.split(' ').next()?.parse().ok());
    let status = status.unwrap_or_else(|| panic!("{line:?} is no status line"));
    assert!(
        matches!(status, 100 | 200 | 400 | 404 | 405 | 408 | 411 | 413 | 414 | 431 | 501 | 505),
        "{line}"
    );
    Some(status)
}
