//! Basic authentication against bcrypt hashes.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use tokio::sync::Semaphore;

use crate::web::config::WebConfig;

/// What is checked for a name that nobody has, so that it takes as long as a wrong password.
const NOBODY: &str = "$2b$10$.vGA1O9wmRjrwAVXD98HNOgsNpDczlqm3Jq7KnEd1rVAGv3Fykk1a";
/// How many passwords are checked at once: each takes a core for a tenth of a second.
const AT_ONCE: usize = 2;
/// How many right passwords are remembered.
const REMEMBERED: usize = 100;
/// bcrypt looks at no more bytes of a password than this.
const LONGEST: usize = 72;

/// Decides who may see the pages.
pub(crate) struct Gate {
    checks: Semaphore,
    /// Keyed hashes of what was found right: names, hashes and passwords together.
    right: Mutex<HashSet<(u64, u64)>>,
    keys: (RandomState, RandomState),
}

impl Gate {
    pub(crate) fn new() -> Self {
        Gate { checks: Semaphore::new(AT_ONCE), right: Mutex::default(), keys: Default::default() }
    }

    /// Whether a request with these headers may be answered.
    pub(crate) async fn admits(&self, config: &WebConfig, headers: &HeaderMap) -> bool {
        if config.users.is_empty() {
            return true;
        }
        let Some((name, password)) = credentials(headers) else { return false };
        let known = config.users.get(&name);
        let hash = known.map_or(NOBODY, |hash| hash).to_owned();
        let key = (&name, &hash, &password);
        let key = (self.keys.0.hash_one(key), self.keys.1.hash_one(key));
        if known.is_some() && self.remembers(key) {
            return true;
        }
        // Never closed.
        let Ok(_permit) = self.checks.acquire().await else { return false };
        let check = move || bcrypt::verify(password, &hash).unwrap_or(false);
        let right = tokio::task::spawn_blocking(check).await.unwrap_or(false) && known.is_some();
        if right {
            self.remember(key);
        }
        right
    }

    fn remembers(&self, key: (u64, u64)) -> bool {
        self.right.lock().unwrap_or_else(PoisonError::into_inner).contains(&key)
    }

    fn remember(&self, key: (u64, u64)) {
        let mut right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        if right.len() >= REMEMBERED {
            right.clear();
        }
        right.insert(key);
    }
}

/// The name and the password that a request brings.
fn credentials(headers: &HeaderMap) -> Option<(String, Vec<u8>)> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = BASE64_STANDARD.decode(encoded.trim()).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let name = String::from_utf8(decoded[..colon].to_vec()).ok()?;
    let password = decoded[colon + 1..].to_vec();
    // bcrypt stops at a zero byte, and at its longest password.
    (password.len() <= LONGEST && !password.contains(&0)).then_some((name, password))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn headers(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, value.parse().unwrap());
        headers
    }

    fn basic(plain: &str) -> HeaderMap {
        headers(&format!("Basic {}", BASE64_STANDARD.encode(plain)))
    }

    #[tokio::test]
    async fn the_right_password_is_admitted_again_and_again_and_no_other() {
        let hash = bcrypt::hash("open sesame", 4).unwrap();
        let text = format!("basic_auth_users:\n  me: {hash}\n");
        let config = WebConfig::of_text(&text, Path::new("")).unwrap();
        let gate = Gate::new();
        for _ in 0..3 {
            assert!(gate.admits(&config, &basic("me:open sesame")).await);
            for wrong in ["me:open", "me:", "you:open sesame", "me", "", ":", "me:open sesame\0"] {
                assert!(!gate.admits(&config, &basic(wrong)).await, "{wrong}");
            }
            for wrong in ["Basic", "Basic ?", "Bearer bWU6b3BlbiBzZXNhbWU=", "basic bWU"] {
                assert!(!gate.admits(&config, &headers(wrong)).await, "{wrong}");
            }
            assert!(!gate.admits(&config, &HeaderMap::new()).await);
        }
    }

    #[tokio::test]
    async fn without_users_nobody_is_asked() {
        assert!(Gate::new().admits(&WebConfig::default(), &HeaderMap::new()).await);
    }

    #[test]
    fn what_is_checked_for_nobody_is_a_hash() {
        assert_eq!(bcrypt::verify("anything", NOBODY).ok(), Some(false));
    }
}
