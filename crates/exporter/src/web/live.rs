//! The web configuration as its files are now: a certificate that is renewed needs no restart.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;

use crate::web::config::WebConfig;

/// How long it takes at most until a change of the files is seen.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The configuration in use.
pub(crate) struct Live {
    /// Its file; without one, nothing is asked for.
    path: Option<PathBuf>,
    current: Mutex<Current>,
}

struct Current {
    config: Arc<WebConfig>,
    stamps: Vec<Stamp>,
    looked: Instant,
}

/// What tells one content of a file from another.
type Stamp = Option<(SystemTime, u64)>;

impl Live {
    /// Reads the file, if one is given.
    pub(crate) fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let config = match path {
            None => WebConfig::default(),
            Some(path) => WebConfig::read(path).with_context(|| path.display().to_string())?,
        };
        let stamps = path.map(|path| stamps(path, &config)).unwrap_or_default();
        let (config, looked) = (Arc::new(config), Instant::now());
        let current = Mutex::new(Current { config, stamps, looked });
        Ok(Live { path: path.map(ToOwned::to_owned), current })
    }

    /// The configuration as the files are now. One that cannot be used leaves the last one in use.
    pub(crate) fn config(&self) -> Arc<WebConfig> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = &self.path
            && current.looked.elapsed() >= LOOK_EVERY
        {
            current.looked = Instant::now();
            let now = stamps(path, &current.config);
            if now != current.stamps {
                match WebConfig::read(path) {
                    Ok(config) => {
                        tracing::info!(file = %path.display(), "web configuration read anew");
                        current.stamps = stamps(path, &config);
                        current.config = Arc::new(config);
                    }
                    Err(error) => {
                        current.stamps = now;
                        tracing::error!(
                            file = %path.display(),
                            "the web configuration stays as it was: {error:#}"
                        );
                    }
                }
            }
        }
        Arc::clone(&current.config)
    }
}

fn stamps(path: &Path, config: &WebConfig) -> Vec<Stamp> {
    let files = std::iter::once(path).chain(config.files.iter().map(PathBuf::as_path));
    let stamp = |path: &Path| {
        let data = fs::metadata(path).ok()?;
        Some((data.modified().ok()?, data.len()))
    };
    files.map(stamp).collect()
}
