//! HTTP: which path shows what.

use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse};
use axum::routing::get;

use crate::collect;
use crate::pages::{Asked, Report};
use crate::source::Source;

/// What the pages are made from.
pub(crate) struct Site {
    pub(crate) source: Source,
    /// How many points of each worker have series of their own.
    pub(crate) worst: usize,
    pub(crate) telemetry_path: String,
}

type Shared = State<Arc<Site>>;

/// Every path that is served. Unknown ones get 404, known ones with another method 405.
pub(crate) fn router(site: Site) -> Router {
    let site = Arc::new(site);
    Router::new()
        .route("/", get(index))
        .route("/-/healthy", get(|| async { "healthy\n" }))
        .route("/-/ready", get(ready))
        .route(REPORT, get(report))
        .route(&site.telemetry_path, get(metrics))
        .fallback(|| async { (StatusCode::NOT_FOUND, "not found\n") })
        .with_state(site)
}

/// Prometheus' text format, as its version 0.0.4 has it.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

async fn metrics(State(site): Shared) -> impl IntoResponse {
    let text = aside(move || collect::metrics(&site.source, site.worst)).await;
    text.map(|text| ([(header::CONTENT_TYPE, TEXT_FORMAT)], text))
}

/// Work that may take a while, on a thread that nobody else waits for.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, (StatusCode, &'static str)> {
    let failed = (StatusCode::INTERNAL_SERVER_ERROR, "it failed; the log says why\n");
    tokio::task::spawn_blocking(work).await.map_err(|_| failed)
}

/// All points as JSON, a page at a time, the worst first.
const REPORT: &str = "/api/v1/report";

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

async fn ready(State(site): Shared) -> (StatusCode, String) {
    match aside(move || site.source.ready()).await {
        Ok(Ok(())) => (StatusCode::OK, "ready\n".to_owned()),
        Ok(Err(missing)) => (StatusCode::SERVICE_UNAVAILABLE, missing + "\n"),
        Err((status, text)) => (status, text.to_owned()),
    }
}

/// No script, no style from elsewhere, nothing to load.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

async fn index(State(site): Shared) -> impl IntoResponse {
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>holdgap exporter</title>\n\
         <style>body{{font:1rem/1.5 system-ui;margin:2rem;color-scheme:light dark}}</style>\n\
         <h1>holdgap exporter</h1>\n\
         <p>How far readers hold back the compaction of shared arrangements.</p>\n\
         <ul>\n\
         <li><a href=\"{metrics}\">Metrics</a>, collected at each scrape</li>\n\
         <li><a href=\"{REPORT}\">Report</a>: every arrangement and who holds it, as JSON</li>\n\
         <li><a href=\"/-/healthy\">Healthy</a>: the process serves</li>\n\
         <li><a href=\"/-/ready\">Ready</a>: every arrangement is published</li>\n\
         </ul>\n</html>\n",
        metrics = site.telemetry_path,
    );
    ([(header::CONTENT_SECURITY_POLICY, POLICY)], Html(page))
}
