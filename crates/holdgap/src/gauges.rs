//! From a report to the gauges of the `metrics` facade.

use metrics::{Key, KeyName, Label, Level, Metadata};

use crate::report::HoldReport;
#[cfg(doc)]
use crate::series::Series;
use crate::series::{SERIES, SeriesKind};

impl HoldReport {
    /// Sets the report's series in the current recorder of the `metrics` facade.
    ///
    /// A series that nothing measures is left out: see [`Series::value`].
    ///
    /// The recorder is looked up anew each time, so one that is installed late, or for one scrape,
    /// is served too. A few allocations a series; takes whatever locks the recorder takes.
    pub fn set_gauges(&self) {
        metrics::with_recorder(|recorder| {
            let metadata = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));
            for series in SERIES {
                let name = KeyName::from(format!("{}{}", self.prefix, series.name));
                let (unit, help) = (Some(series.unit), series.help.into());
                let key = Key::from_parts(name.clone(), self.labels());
                let Some(value) = (series.value)(self) else { continue };
                match series.kind {
                    SeriesKind::Gauge => {
                        recorder.describe_gauge(name, unit, help);
                        recorder.register_gauge(&key, &metadata).set(value as f64);
                    }
                    SeriesKind::Counter => {
                        recorder.describe_counter(name, unit, help);
                        recorder.register_counter(&key, &metadata).absolute(value);
                    }
                }
            }
        });
    }

    fn labels(&self) -> Vec<Label> {
        let role = self.role.label().map(|role| Label::new("role", role.to_owned()));
        role.into_iter().chain([Label::new("worker_id", self.worker.to_string())]).collect()
    }
}
