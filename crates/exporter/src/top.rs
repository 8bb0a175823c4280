//! `top`: the status page for people on a machine without a browser.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table, TableState, Wrap};

use crate::args::TopArgs;
use crate::status::{History, Shown, Status};
use crate::table::{HEADS, is_notable, row, table};
use crate::text::{milliseconds, plain, time};
use crate::watch::Watch;

/// How often it is looked anew.
const EVERY: Duration = Duration::from_secs(1);
/// For how long an exporter may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many of each worker's points are shown, where no exporter says so.
const MOST: usize = 10;

/// Shows how it stands: once as a table, or until a key ends it.
pub(crate) fn top(args: &TopArgs) -> anyhow::Result<()> {
    let mut looks = Looks::open(args)?;
    let status = looks.look()?;
    if args.once {
        let mut out = io::stdout().lock();
        writeln!(out, "{}", headline(&status))?;
        for line in remarks(&status) {
            writeln!(out, "{line}")?;
        }
        write!(out, "{}", table(status.worst.iter().map(|shown| &shown.point)))?;
        return Ok(());
    }
    let mut terminal = ratatui::try_init().context("there is no terminal; use --once")?;
    let ended = watch(&mut terminal, looks, status);
    ratatui::restore();
    ended
}

/// Where the status comes from.
enum Looks {
    Exporter { agent: ureq::Agent, url: String },
    Attached { watch: Watch, history: History },
}

impl Looks {
    fn open(args: &TopArgs) -> anyhow::Result<Self> {
        if !args.attach.is_empty() {
            // One that has ended stays for as long as its segment does: nothing is removed here.
            let watch = Watch::open(&args.attach, Duration::MAX)?;
            return Ok(Looks::Attached { watch, history: History::new() });
        }
        let agent = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build().into();
        let scheme = if args.url.contains("://") { "" } else { "http://" };
        let url = format!("{scheme}{}/api/v1/status", args.url.trim_end_matches('/'));
        Ok(Looks::Exporter { agent, url })
    }

    fn look(&mut self) -> anyhow::Result<Status> {
        match self {
            Looks::Attached { watch, history } => Ok(history.take(watch.look(MOST), MOST)),
            Looks::Exporter { agent, url } => {
                let answer = agent.get(&*url).call();
                let mut answer = match answer {
                    Ok(answer) => answer,
                    Err(ureq::Error::StatusCode(code)) => {
                        bail!("{url} answers {code}: is an exporter of this version there?")
                    }
                    Err(error) => bail!("{url}: {error}; start an exporter, or use --attach DIR"),
                };
                let status = answer.body_mut().read_json();
                status.with_context(|| format!("{url}: that is no exporter's answer"))
            }
        }
    }
}

/// One line that says how it stands.
fn headline(status: &Status) -> String {
    let points = status.published;
    let held = status.worst.iter().map(|shown| &shown.point).find(|p| p.held && !p.frozen);
    let Some(worst) = held else { return format!("all clear: none of {points} points is held") };
    let (role, worker) = (plain(&worst.role), worst.worker);
    let stalled = worst.stalled_seconds.unwrap_or_default();
    let stalled = time(Duration::try_from_secs_f64(stalled).unwrap_or_default());
    format!(
        "{} of {points} points held, worst gap {}, for {stalled} ({role}, worker {worker})",
        status.held,
        milliseconds(status.gap)
    )
}

/// What else there is to say, a line each.
fn remarks(status: &Status) -> Vec<String> {
    let mut lines = Vec::new();
    if status.attached && status.processes.is_empty() {
        lines.push("no process has a segment there".to_owned());
    }
    for process in status.processes.iter().filter(|process| !process.up) {
        lines.push(format!("{} has ended: its last state is shown", plain(&process.label)));
    }
    if status.unreadable > 0 {
        lines.push("some files of the folder cannot be read".to_owned());
    }
    lines
}

/// The terminal's state.
struct View {
    status: Status,
    /// Why the status is no newer, and when it was made.
    failed: Option<String>,
    at: Instant,
    selected: TableState,
}

fn watch(
    terminal: &mut ratatui::DefaultTerminal,
    mut looks: Looks,
    status: Status,
) -> anyhow::Result<()> {
    let (at, selected) = (Instant::now(), TableState::default());
    let mut view = View { status, failed: None, at, selected };
    let mut next = Instant::now() + EVERY;
    loop {
        terminal.draw(|frame| draw(frame, &mut view))?;
        if event::poll(next.saturating_duration_since(Instant::now()))? {
            let Event::Key(key) = event::read()? else { continue };
            let ended = key.code == KeyCode::Char('c')
                && key.modifiers.contains(KeyModifiers::CONTROL)
                || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc);
            match key.code {
                _ if key.kind == KeyEventKind::Release => {}
                _ if ended => return Ok(()),
                KeyCode::Down | KeyCode::Char('j') => view.selected.select_next(),
                KeyCode::Up | KeyCode::Char('k') => view.selected.select_previous(),
                _ => {}
            }
            continue;
        }
        next = Instant::now() + EVERY;
        match looks.look() {
            Ok(status) => {
                (view.status, view.at, view.failed) = (status, Instant::now(), None);
            }
            Err(error) => view.failed = Some(format!("{error:#}")),
        }
    }
}

fn notable(status: &Status) -> impl Iterator<Item = &Shown> {
    status.worst.iter().filter(|shown| is_notable(&shown.point))
}

fn draw(frame: &mut Frame<'_>, view: &mut View) {
    let mut head = vec![headline(&view.status)];
    head.extend(remarks(&view.status));
    if let Some(failed) = &view.failed {
        head.push(format!("as it was {} ago: {failed}", time(view.at.elapsed())));
    }
    let heights = [Constraint::Length(head.len() as u16 + 1), Constraint::Min(3)];
    let [above, middle] = Layout::vertical(heights).areas(frame.area());
    let [middle, below] =
        Layout::vertical([Constraint::Min(3), Constraint::Length(7)]).areas(middle);
    let mut lines: Vec<_> = head.into_iter().map(Line::from).collect();
    if let Some(first) = lines.first_mut() {
        first.style = Style::new().add_modifier(Modifier::BOLD);
    }
    frame.render_widget(Paragraph::new(Text::from(lines)), above);
    draw_points(frame, middle, view);
    draw_holders(frame, below, view);
}

fn draw_points(frame: &mut Frame<'_>, area: Rect, view: &mut View) {
    let cells = |shown: &Shown| {
        let cells = row(&shown.point).into_iter().map(Cell::from);
        Row::new(cells.chain([Cell::from(sparkline(&shown.history))]))
    };
    let rows: Vec<_> = notable(&view.status).map(cells).collect();
    let heads = HEADS.into_iter().chain(["LAST 10 MIN"]).map(Cell::from);
    let widths = [
        Constraint::Fill(3),
        Constraint::Length(12),
        Constraint::Length(6),
        Constraint::Length(16),
        Constraint::Length(9),
        Constraint::Length(20),
        Constraint::Fill(3),
        Constraint::Length(20),
    ];
    let table = Table::new(rows, widths)
        .header(Row::new(heads).style(Style::new().add_modifier(Modifier::UNDERLINED)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_stateful_widget(table, area, &mut view.selected);
}

/// Who holds the selected point, or what the keys are.
fn draw_holders(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let selected = view.selected.selected().and_then(|place| notable(&view.status).nth(place));
    let lines: Vec<_> = match selected {
        None => vec![Line::from("up and down select an arrangement, q ends")],
        Some(Shown { point, .. }) => {
            let holder = |holder: &crate::pages::Holder| {
                let age = Duration::try_from_secs_f64(holder.age_seconds).unwrap_or_default();
                let (kind, label) = (plain(&holder.kind), plain(&holder.label));
                Line::from(format!("{kind}  {label}  {}", time(age)))
            };
            let frontiers = format!("requested {}, applied {}", point.requested, point.applied);
            let more = (point.more_holders > 0).then(|| format!("and {} more", point.more_holders));
            std::iter::once(Line::from(plain(&frontiers)))
                .chain(point.holders.iter().map(holder))
                .chain(more.map(Line::from))
                .collect()
        }
    };
    let title = selected.map_or_else(String::new, |shown| plain(&shown.point.name));
    let block = Block::bordered().title(title);
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: true }).block(block), area);
}

/// The last ten minutes in twenty characters.
fn sparkline(history: &[u64]) -> String {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = history.iter().copied().max().unwrap_or(0).max(1);
    let bar = |some: &[u64]| {
        let value = some.iter().copied().max().unwrap_or(0);
        // Anything at all shows.
        let eighths = (u128::from(value) * 8).div_ceil(u128::from(most));
        BARS[usize::try_from(eighths).map_or(8, |eighths| eighths.min(8))]
    };
    history.chunks(3).map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use crate::pages::{Holder, Point};

    fn held() -> Status {
        let holder = Holder {
            kind: "reader".into(),
            label: "report of last\nnight".into(),
            age_seconds: 9.0,
        };
        let point = Point {
            id: "u42".into(),
            name: "orders".into(),
            role: "maintenance".into(),
            held: true,
            gap: 252_000,
            stalled_seconds: Some(253.0),
            holders: vec![holder],
            ..Point::default()
        };
        let shown = Shown { point, history: vec![0, 0, 1, 8, 4, 2] };
        Status { published: 31, held: 1, gap: 252_000, worst: vec![shown], ..Status::default() }
    }

    fn drawn(view: &mut View) -> String {
        let mut terminal = Terminal::new(TestBackend::new(130, 20)).unwrap();
        terminal.draw(|frame| draw(frame, view)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn it_shows_who_holds_what_and_all_clear_when_nobody_does() {
        let (at, selected) = (Instant::now(), TableState::default().with_selected(0));
        let mut view = View { status: held(), failed: None, at, selected };
        let screen = drawn(&mut view);
        for said in ["1 of 31 points held, worst gap 4m 12s", "u42 orders", "▁█", "reader  report"]
        {
            assert!(screen.contains(said), "{said} is not in\n{screen}");
        }
        view.status = Status { published: 31, ..Status::default() };
        view.failed = Some("no answer".to_owned());
        let screen = drawn(&mut view);
        assert!(screen.contains("all clear: none of 31 points is held"), "{screen}");
        assert!(screen.contains("as it was") && screen.contains("no answer"), "{screen}");
        assert!(!screen.contains("u42"), "{screen}");
    }

    #[test]
    fn a_sparkline_shows_the_least_of_gaps() {
        assert_eq!(sparkline(&[0, 0, 0, 1, 0, 0, 1_000_000, 0, 0]), " ▁█");
        assert_eq!(sparkline(&[u64::MAX, 0, 0]), "█");
        assert_eq!(sparkline(&[]), "");
    }
}
