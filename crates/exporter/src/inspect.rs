//! `inspect`: what the points of a process looked like, also at its end.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use holdgap_segment::{Folder, Segment, Unreadable};
use serde::Serialize;

use crate::args::InspectArgs;
use crate::pages::Point;
use crate::table::{headline, table};
use crate::text::plain;

/// Prints what the segments under a path show.
pub(crate) fn inspect(args: &InspectArgs) -> anyhow::Result<()> {
    let (segments, unreadable) = open(args)?;
    let mut out = io::stdout().lock();
    if args.json {
        let processes = segments.iter().map(Process::of).collect::<Result<_, _>>()?;
        let unreadable = unreadable
            .into_iter()
            .map(|(file, why)| Other { file, reason: why.reason(), error: why.to_string() })
            .collect();
        serde_json::to_writer_pretty(&mut out, &Document { processes, unreadable })?;
        writeln!(out)?;
        return Ok(());
    }
    for segment in &segments {
        print(&mut out, segment)?;
    }
    for (name, why) in &unreadable {
        writeln!(out, "{}: {why}", plain(name))?;
    }
    Ok(())
}

type Files = (Vec<Segment>, Vec<(String, Unreadable)>);

fn open(args: &InspectArgs) -> anyhow::Result<Files> {
    let path = &args.path;
    if path.is_file() {
        let segment = Segment::open_file(path).with_context(|| path.display().to_string())?;
        return Ok((vec![segment], Vec::new()));
    }
    let look = Folder::open(path)?.look()?;
    if look.segments.is_empty() && look.unreadable.is_empty() {
        bail!("{}: no process has a segment here", path.display());
    }
    Ok((look.segments, look.unreadable))
}

fn print(out: &mut impl Write, segment: &Segment) -> anyhow::Result<()> {
    let points: Vec<_> = segment.points()?.into_iter().map(Point::of).collect();
    let process = segment.process();
    let (name, pid) = (plain(&process.name), process.pid);
    let state = if segment.is_up() { "lives" } else { "ended" };
    let (beat, count) = (heartbeat(segment), points.len());
    writeln!(out, "{name} (pid {pid}) {state}; last heartbeat {beat}, {count} points")?;
    if segment.not_shown() > 0 {
        writeln!(out, "{} more points are not shown: no room in the segment", segment.not_shown())?;
    }
    writeln!(out, "{}", headline(&points))?;
    write!(out, "{}", table(&points))?;
    Ok(())
}

/// When the process last said that it lived, in UTC.
fn heartbeat(segment: &Segment) -> String {
    /// Beyond what a date can be: nobody's heartbeat.
    const END: u64 = 253_402_300_799;
    let at = segment.last_heartbeat();
    if at.as_secs() > END {
        return "unknown".to_owned();
    }
    let at: SystemTime = UNIX_EPOCH + at;
    humantime::format_rfc3339_seconds(at).to_string()
}

#[derive(Serialize)]
struct Document {
    processes: Vec<Process>,
    unreadable: Vec<Other>,
}

#[derive(Serialize)]
struct Process {
    name: String,
    pid: u32,
    instance: String,
    up: bool,
    last_heartbeat: String,
    not_shown: u64,
    points: Vec<Point>,
}

#[derive(Serialize)]
struct Other {
    file: String,
    reason: &'static str,
    error: String,
}

impl Process {
    fn of(segment: &Segment) -> Result<Self, Unreadable> {
        let process = segment.process();
        Ok(Process {
            name: process.name.clone(),
            pid: process.pid,
            instance: format!("{:016x}", process.instance),
            up: segment.is_up(),
            last_heartbeat: heartbeat(segment),
            not_shown: segment.not_shown(),
            points: segment.points()?.into_iter().map(Point::of).collect(),
        })
    }
}
