use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use thirtyfour::prelude::*;

use crate::support::{Exporter, PATIENCE, Scratch, Stage, example};

/// A chromedriver of the test's own, ended with this value and all that it started.
struct Driver {
    child: Child,
    url: String,
}

impl Driver {
    fn start() -> Self {
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("chromedriver: bash .ci/test installs it");
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.map(Result::unwrap).find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            port.trim_end_matches('.').parse::<u16>().ok()
        });
        Driver { child, url: format!("http://127.0.0.1:{}", port.unwrap()) }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-s", "KILL", "--", &group]).status();
        let _ = self.child.wait();
    }
}

/// Runs `steps` in a browser that shows the page at `url`.
fn browse<F: Future<Output = WebDriverResult<()>>>(url: &str, steps: impl FnOnce(WebDriver) -> F) {
    let driver = Driver::start();
    let mut browser = DesiredCapabilities::chrome();
    let profile = Scratch::on_disk();
    for flag in [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--window-size=1000,900",
        &format!("--user-data-dir={}", profile.text()),
    ] {
        browser.add_arg(flag).unwrap();
    }
    let run = async {
        let web = WebDriver::new(&*driver.url, browser).await.unwrap();
        let run = web.run_and_quit(async |web: WebDriver| {
            web.goto(url).await?;
            steps(web).await
        });
        run.await.unwrap();
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run);
}

async fn script(web: &WebDriver, code: &str) -> WebDriverResult<Value> {
    Ok(web.execute(code, vec![]).await?.json().clone())
}

/// What is read at a place of the page.
async fn text(web: &WebDriver, selector: &str) -> WebDriverResult<String> {
    let code = format!("return document.querySelector({}).textContent", json!(selector));
    Ok(script(web, &code).await?.as_str().unwrap().to_owned())
}

/// Waits until what is read at a place is so.
async fn wait(
    web: &WebDriver,
    selector: &str,
    is_so: impl Fn(&str) -> bool,
) -> WebDriverResult<String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let read = text(web, selector).await?;
        if is_so(&read) {
            return Ok(read);
        }
        if Instant::now() > deadline {
            let all = text(web, "body").await?;
            panic!("{selector} stays at {read:?} on\n{all}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The least contrast of what is read on the page with what is behind it.
const CONTRAST: &str = r#"
    const rgb = (text) => text.match(/[\d.]+/g).map(Number);
    const light = (c) => { const x = c / 255; return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; };
    const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
    const behind = (e) => {
        for (; e; e = e.parentElement) {
            const text = getComputedStyle(e).backgroundColor;
            if (text.startsWith("rgb(")) return rgb(text);
        }
        return [255, 255, 255];
    };
    const contrast = (e) => {
        const [a, b] = [luminance(rgb(getComputedStyle(e).color)), luminance(behind(e))].sort().reverse();
        return (a + 0.05) / (b + 0.05);
    };
    const read = [...document.querySelectorAll("p, td, th, button, caption, a, label, figcaption, li, h1, h2")]
        .filter((e) => e.offsetWidth && e.textContent.trim() && !e.closest("tr.more"));
    return [read.length, Math.min(...read.map(contrast))];
"#;

async fn is_readable(web: &WebDriver) -> WebDriverResult<()> {
    let found = script(web, CONTRAST).await?;
    assert!(found[0].as_u64() > Some(10), "{found}");
    assert!(found[1].as_f64() >= Some(4.5), "the least contrast is {}", found[1]);
    Ok(())
}

#[test]
fn a_slow_reader_appears_by_name_and_leaves_and_the_page_is_clear_again() {
    let exporter = Exporter::start_as_is(&[
        "--web.listen-address",
        "127.0.0.1:0",
        "--replica.workers",
        "2",
        "--replica.arrangements",
        "8",
        "--replica.round",
        "1s",
        "--replica.slow-reader",
        "25s",
    ]);
    browse(&exporter.url, async |web| {
        wait(&web, "#verdict", |verdict| verdict.starts_with("Held now: 2 of 16")).await?;
        wait(&web, "#detail", |detail| detail.contains("slow reader of u1, for ")).await?;
        let title = web.title().await?;
        assert!(title.starts_with("⚠ 2 held, "), "{title}");
        assert_eq!(text(&web, "#fresh").await?, "Up to date");
        wait(&web, "#worst tbody", |rows| rows.contains("rows of u1 (u1)")).await?;
        let count = "return document.querySelectorAll('#worst tbody tr').length";
        assert_eq!(script(&web, count).await?, 2);

        // The keyboard opens a row, which then names its holders, and stays open at the next look.
        let opener = web.find(By::Css("#worst tbody button")).await?;
        opener.focus().await?;
        opener.send_keys(Key::Enter + "").await?;
        let open = wait(&web, "#worst tr.more", |open| open.contains("slow reader of u1")).await?;
        for fact in ["Requested", "Applied", "Physical"] {
            assert!(open.contains(fact), "{open}");
        }
        assert_eq!(opener.attr("aria-expanded").await?.as_deref(), Some("true"));
        let fresh =
            script(&web, "return document.querySelectorAll('#worst tr')[1].textContent").await?;
        wait(&web, "#worst tbody tr", |row| Some(row) != fresh.as_str()).await?;
        let focused = "return document.activeElement.getAttribute('aria-expanded')";
        assert_eq!(script(&web, focused).await?, "true", "the focus stays where it was");
        is_readable(&web).await?;
        web.cdp()
            .send_raw(
                "Emulation.setEmulatedMedia",
                json!({"features": [{"name": "prefers-color-scheme", "value": "dark"}]}),
            )
            .await?;
        let dark = "return matchMedia('(prefers-color-scheme: dark)').matches";
        assert_eq!(script(&web, dark).await?, true);
        is_readable(&web).await?;
        web.cdp().send_raw("Emulation.setEmulatedMedia", json!({"features": []})).await?;

        // Filters leave what they ask for, by the reader's name too.
        let name = web.find(By::Css("#by-name")).await?;
        name.send_keys("SLOW reader").await?;
        assert!(text(&web, "#worst tbody").await?.contains("rows of u1"));
        name.send_keys(" of nobody").await?;
        let none = "Nothing that is held matches the filters.";
        assert_eq!(text(&web, "#none").await?, none);
        name.clear().await?;
        script(
            &web,
            "document.getElementById('by-name').dispatchEvent(new Event('input', {bubbles: true}))",
        )
        .await?;
        let choose = |id: &str, value: &str| {
            format!(
                "const s = document.getElementById('{id}'); s.value = '{value}'; \
                 s.dispatchEvent(new Event('input', {{bubbles: true}})); \
                 return [...s.options].map((o) => o.value)"
            )
        };
        let workers = script(&web, &choose("by-worker", "1")).await?;
        assert_eq!(workers, json!(["", "0", "1"]));
        let rows = "return [...document.querySelectorAll('#worst tbody tr:not(.more)')].map((r) => r.textContent)";
        let rows = script(&web, rows).await?;
        let rows = rows.as_array().unwrap();
        assert!(rows.iter().all(|row| row.as_str().unwrap().contains("worker 1")), "{rows:?}");
        assert!(!rows.is_empty());
        script(&web, &choose("by-worker", "")).await?;
        let roles = script(&web, &choose("by-role", "interactive")).await?;
        assert_eq!(roles, json!(["", "interactive", "maintenance"]));
        assert_eq!(text(&web, "#none").await?, none);
        script(&web, &choose("by-role", "")).await?;

        wait(&web, "#verdict", |verdict| !verdict.contains('.')).await?;
        let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/status.png");
        let path = std::env::var("HOLDGAP_SCREENSHOT").unwrap_or_else(|_| folder.to_owned());
        web.screenshot(path.as_ref()).await?;
        assert!(std::fs::metadata(&path).unwrap().len() > 10_000);

        // A phone shows all of it without scrolling sideways.
        web.cdp()
            .send_raw(
                "Emulation.setDeviceMetricsOverride",
                json!({"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": true}),
            )
            .await?;
        let widths = "return [document.documentElement.scrollWidth, innerWidth]";
        let widths = script(&web, widths).await?;
        assert_eq!(widths, json!([360, 360]));
        web.cdp().send_raw("Emulation.clearDeviceMetricsOverride", json!({})).await?;

        wait(&web, "#verdict", |verdict| verdict == "All clear: nothing is held").await?;
        wait(&web, "#worst tbody", |rows| !rows.contains("slow reader")).await?;
        let title = web.title().await?;
        assert!(title.starts_with("✓ all clear"), "{title}");
        // What was is still drawn.
        let peaks = text(&web, "#peaks").await?;
        assert!(peaks.contains("maintenance: at most ") && peaks.contains('s'), "{peaks}");
        assert!(!peaks.contains("maintenance: at most 0"), "{peaks}");
        Ok(())
    });
}

#[test]
fn a_hostile_name_stays_text() {
    let scratch = Scratch::new();
    let stage = Stage::new(&scratch, "<b>app</b>");
    let name = "<img src=x onerror=\"hostile=1\">";
    let holder = "</li><script>hostile=1</script>\n'\"&amp;";
    let _point = stage.hold("<i>u1</i>", name, holder, 5_000);
    let exporter = scratch.exporter(&[]);
    browse(&exporter.url, async |web| {
        wait(&web, "#verdict", |verdict| verdict.starts_with("Held now: 1 of 1")).await?;
        wait(&web, "#worst tbody", |rows| rows.contains(name) && rows.contains("<i>u1</i>"))
            .await?;
        web.find(By::Css("#worst tbody button")).await?.click().await?;
        wait(&web, "#worst tr.more", |open| open.contains(holder)).await?;
        assert!(text(&web, "#by-process").await?.contains("<b>app</b>"));
        let made = "return [document.querySelectorAll('main img, main script, main i, main b').length, \
                    typeof hostile]";
        assert_eq!(script(&web, made).await?, json!([0, "undefined"]));
        // What the policy forbids does not run even where somebody brings it in.
        let brought = "const made = document.createElement('script'); made.textContent = 'hostile = 1'; \
                       document.body.append(made); return typeof hostile";
        assert_eq!(script(&web, brought).await?, "undefined");
        Ok(())
    });
}

#[test]
fn a_process_that_died_is_said_and_a_page_without_its_exporter_says_that_it_is_old() {
    let scratch = Scratch::new();
    let mut app = scratch.run(&example("embedded_app"), &[]);
    let mut exporter = scratch.exporter(&[]);
    let url = exporter.url.clone();
    browse(&url, async |web| {
        wait(&web, "#detail", |detail| detail.contains("nightly report")).await?;
        assert_eq!(text(&web, "#notes").await?, "");
        app.kill();
        let said = format!("✕ embedded_app:{} has ended, ", app.pid());
        wait(&web, "#notes", |notes| notes.starts_with(&said)).await?;
        assert!(text(&web, "#detail").await?.contains("nightly report"), "as it was at its end");
        exporter.child.kill().unwrap();
        exporter.child.wait().unwrap();
        wait(&web, "#fresh", |fresh| fresh.starts_with("⚠ This is old")).await?;
        Ok(())
    });
}
