//! From a report to the gauges of the `metrics` facade.

use metrics::{Key, KeyName, Label, Level, Metadata};

use crate::kind::HoldKind;
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
                let samples = series.samples(self);
                if samples.is_empty() {
                    continue;
                }
                match series.kind {
                    SeriesKind::Gauge => recorder.describe_gauge(name.clone(), unit, help),
                    SeriesKind::Counter => recorder.describe_counter(name.clone(), unit, help),
                }
                for (kind, value) in samples {
                    let key = Key::from_parts(name.clone(), self.labels(kind));
                    match series.kind {
                        SeriesKind::Gauge => recorder.register_gauge(&key, &metadata).set(value),
                        SeriesKind::Counter => {
                            recorder.register_counter(&key, &metadata).absolute(value as u64);
                        }
                    }
                }
            }
        });
    }

    fn labels(&self, kind: Option<HoldKind>) -> Vec<Label> {
        let process =
            self.process.as_ref().map(|process| Label::new("process", process.to_string()));
        let role = self.role.label().map(|role| Label::new("role", role.to_owned()));
        let kind = kind.map(|kind| Label::from_static_parts("kind", kind.label()));
        let worker = Label::new("worker_id", self.worker.to_string());
        process.into_iter().chain(role).chain([worker]).chain(kind).collect()
    }
}
