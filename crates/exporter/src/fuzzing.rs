//! What fuzzing drives: not part of the interface.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use holdgap::{Point, Registry, Role};
use timely::progress::Antichain;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Semaphore, watch};

use crate::own::Own;
use crate::server::{Scraping, Site, router};
use crate::source::Source;
use crate::web::config::WebConfig;
use crate::web::connections;
use crate::web::live::Live;

/// Reads a web configuration. Returns whether it is one, or the one line that says why not.
pub fn web_config(text: &str) -> Result<(), String> {
    WebConfig::of_text(text, Path::new("")).map(drop).map_err(|error| format!("{error:#}"))
}

/// What a connection answers on which these bytes come, and then no more.
pub fn connection(bytes: &[u8]) -> Vec<u8> {
    static SERVED: LazyLock<(tokio::runtime::Runtime, axum::Router, Point<u64>)> =
        LazyLock::new(|| {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
            let registry = Registry::new();
            let mut point = registry.runtime(Role::Maintenance).worker(0).publish("u1", "orders");
            point.set(&Antichain::from_elem(9), &Antichain::from_elem(4));
            // The sender goes at once: what is sent as events ends with what there is.
            let (_, status) = watch::channel(Some("{}".into()));
            let site = Site {
                source: Source::embedded(&registry, 1),
                worst: 10,
                telemetry_path: "/metrics".to_owned(),
                own: Own::new(),
                status,
                scraping: Scraping::default(),
                pages: Arc::new(Semaphore::new(1_000)),
            };
            let live = Live::open(None).expect("nothing is read");
            let router = router(Arc::new(site), Arc::new(live));
            (runtime.expect("threads can be started"), router, point)
        });
    let (runtime, router, _) = &*SERVED;
    let (mut client, server) = tokio::io::duplex(1 << 20);
    let bytes = bytes.to_vec();
    runtime.block_on(async move {
        let (_stop, stopped) = watch::channel(false);
        let router = router.clone();
        let serving = tokio::spawn(async move {
            // How a connection ends is its client's affair.
            let _ = connections::requests(server, router, stopped).await;
        });
        let mut answer = Vec::new();
        // The other side may have hung up.
        let _ = client.write_all(&bytes).await;
        let _ = client.shutdown().await;
        let _ = client.read_to_end(&mut answer).await;
        serving.await.expect("it does not panic");
        answer
    })
}
