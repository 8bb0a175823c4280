//! HTTP: which path shows what.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use tokio::sync::{Mutex, Semaphore, watch};
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt};
use tower_http::compression::CompressionLayer;

use crate::collect;
use crate::openmetrics;
use crate::own::Own;
use crate::pages::{Asked, Report};
use crate::source::Source;
use crate::web::auth::Gate;
use crate::web::live::Live;

/// What the pages are made from.
pub(crate) struct Site {
    pub(crate) source: Source,
    /// How many points of each worker have series of their own.
    pub(crate) worst: usize,
    pub(crate) telemetry_path: String,
    pub(crate) own: Own,
    /// How it stands, as JSON: made once a second, and not there before the first look.
    pub(crate) status: watch::Receiver<Option<Arc<str>>>,
    /// The scrape under way, for those that ask meanwhile.
    pub(crate) scraping: Scraping,
    /// A place for each page that is kept up to date.
    pub(crate) pages: Arc<Semaphore>,
}

/// How many pages are kept up to date at once. They keep their connections: some are left to scrapes.
pub(crate) const MOST_PAGES: usize = 64;

/// A scrape that several may wait for: its number, and what it found.
#[derive(Default)]
pub(crate) struct Scraping {
    /// How many have begun.
    begun: std::sync::atomic::AtomicU64,
    last: Mutex<(u64, Arc<str>)>,
}

type Shared = State<Arc<Site>>;

/// How it stands, as JSON.
const STATUS: &str = "/api/v1/status";
/// The same again and again, as server-sent events.
const EVENTS: &str = "/api/v1/events";
/// All points as JSON, a page at a time, the worst first.
const REPORT: &str = "/api/v1/report";
/// Paths that are served whatever the command line says.
pub(crate) const TAKEN: [&str; 8] =
    ["/", "/status.css", "/status.js", "/-/healthy", "/-/ready", REPORT, STATUS, EVENTS];

/// Every path that is served. Unknown ones get 404, known ones with another method 405.
pub(crate) fn router(site: Arc<Site>, live: Arc<Live>) -> Router {
    let style = ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("status.css"));
    let script =
        ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("status.js"));
    Router::new()
        .route("/", get(index))
        .route("/status.css", get(move || async move { style }))
        .route("/status.js", get(move || async move { script }))
        .route("/-/healthy", get(|| async { "healthy\n" }))
        .route("/-/ready", get(ready))
        .route(REPORT, get(report))
        .route(STATUS, get(status))
        .route(EVENTS, get(events))
        .route(&site.telemetry_path, get(metrics))
        .fallback(|| async { (StatusCode::NOT_FOUND, "not found\n") })
        .with_state(site)
        .layer(CompressionLayer::new())
        .layer(from_fn_with_state(Arc::new((live, Gate::new())), guarded))
}

/// Answers whoever may be answered, with the headers that every answer has.
async fn guarded(
    State(guard): State<Arc<(Arc<Live>, Gate)>>,
    request: Request,
    next: Next,
) -> Response {
    let (live, gate) = &*guard;
    let config = live.config();
    let mut response = if gate.admits(&config, request.headers()).await {
        next.run(request).await
    } else {
        let challenge = [(header::WWW_AUTHENTICATE, "Basic realm=\"holdgap\", charset=\"UTF-8\"")];
        (StatusCode::UNAUTHORIZED, challenge, "unauthorized\n").into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.extend(config.headers.iter().cloned());
    response
}

/// Prometheus' text format, as its version 0.0.4 has it.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

async fn metrics(State(site): Shared, headers: HeaderMap) -> impl IntoResponse {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let open = accept.is_some_and(openmetrics::is_asked_for);
    scrape(site).await.map(|text| {
        if open {
            ([(header::CONTENT_TYPE, openmetrics::CONTENT_TYPE)], openmetrics::of_text(&text))
        } else {
            ([(header::CONTENT_TYPE, TEXT_FORMAT)], text.to_string())
        }
    })
}

/// One scrape. Those that ask while one is waited for share the next: however many ask, the points
/// are walked by one at a time, and nobody is told what was before it asked.
async fn scrape(site: Arc<Site>) -> Result<Arc<str>, (StatusCode, &'static str)> {
    use std::sync::atomic::Ordering::SeqCst;
    let begun = site.scraping.begun.load(SeqCst);
    let mut last = site.scraping.last.lock().await;
    if last.0 > begun {
        // It began after this was asked for.
        site.own.note_throttled();
        return Ok(Arc::clone(&last.1));
    }
    let number = site.scraping.begun.fetch_add(1, SeqCst) + 1;
    let of = Arc::clone(&site);
    let text = aside(move || collect::metrics(&of.source, of.worst, &of.own)).await?;
    *last = (number, text.into());
    Ok(Arc::clone(&last.1))
}

/// Work that may take a while, on a thread that nobody else waits for.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, (StatusCode, &'static str)> {
    let failed = (StatusCode::INTERNAL_SERVER_ERROR, "it failed; the log says why\n");
    tokio::task::spawn_blocking(work).await.map_err(|_| failed)
}

async fn report(
    State(site): Shared,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Json<Report>, (StatusCode, &'static str)> {
    let page = asked.ok().and_then(|Query(asked)| asked.checked());
    let Some((offset, limit)) = page else {
        let usage = "ask for ?offset=N&limit=M, where M is 1 to 1000\n";
        return Err((StatusCode::BAD_REQUEST, usage));
    };
    let page = aside(move || site.source.page(offset, limit)).await?;
    Ok(Json(Report::of(page, offset, limit, REPORT)))
}

async fn status(State(site): Shared) -> impl IntoResponse {
    let mut latest = site.status.clone();
    let known = latest.wait_for(Option::is_some).await;
    let text = known.ok().and_then(|status| status.as_deref().map(str::to_owned));
    let text = text.ok_or((StatusCode::SERVICE_UNAVAILABLE, "the exporter ends\n"))?;
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    Ok::<_, (StatusCode, &'static str)>((headers, text))
}

async fn events(
    State(site): Shared,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + use<>>, (StatusCode, &'static str)>
{
    let busy = (StatusCode::SERVICE_UNAVAILABLE, "too many pages are open; close some\n");
    let place = Arc::clone(&site.pages).try_acquire_owned().map_err(|_| busy)?;
    let events = WatchStream::new(site.status.clone());
    let event = move |status: Option<Arc<str>>| {
        // The place is this page's for as long as it is there.
        let _ = &place;
        Some(Ok(Event::default().data(status?)))
    };
    Ok(Sse::new(events.filter_map(event)).keep_alive(KeepAlive::default()))
}

async fn ready(State(site): Shared) -> (StatusCode, String) {
    match aside(move || site.source.ready()).await {
        Ok(Ok(())) => (StatusCode::OK, "ready\n".to_owned()),
        Ok(Err(missing)) => (StatusCode::SERVICE_UNAVAILABLE, missing + "\n"),
        Err((status, text)) => (status, text.to_owned()),
    }
}

/// The page's own script and style, its own events, and nothing from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      connect-src 'self'; img-src 'self' data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

async fn index(State(site): Shared) -> impl IntoResponse {
    // A path has no character that means something in HTML.
    let page = include_str!("status.html").replace("{{metrics}}", &site.telemetry_path);
    ([(header::CONTENT_SECURITY_POLICY, POLICY)], Html(page))
}
