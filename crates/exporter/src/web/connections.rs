//! Connections: accepted up to a bound, each under timeouts, over TLS where that is asked for.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;

use crate::web::live::Live;

/// For how long a client may take to agree on TLS.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// For how long a client may take to send the head of a request, or nothing at all.
const HEAD: Duration = Duration::from_secs(10);
/// For how long a client may take nothing of an answer.
const WRITE: Duration = Duration::from_secs(30);
/// The longest head of a request, in bytes.
const LONGEST_HEAD: usize = 16 * 1024;
/// For how long nothing is accepted when the process is out of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stopped`, at most `most` connections at once: more wait to be accepted.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    live: Arc<Live>,
    most: usize,
    stopped: watch::Receiver<bool>,
) {
    let free = Arc::new(Semaphore::new(most));
    let mut stop = stopped.clone();
    loop {
        let next = async {
            // Never closed.
            let permit = Arc::clone(&free).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            next = next => next,
            _ = stop.changed() => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!("cannot accept: {error}");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let (router, live, stopped) = (router.clone(), Arc::clone(&live), stopped.clone());
        tokio::spawn(async move {
            // A connection that ends badly is its client's affair.
            if let Err(error) = connection(stream, router, &live, stopped).await {
                tracing::debug!("connection: {error}");
            }
            drop(permit);
        });
    }
    // Those under way have the permits until they end.
    let all = u32::try_from(most).unwrap_or(u32::MAX);
    let _ = free.acquire_many(all).await;
}

async fn connection(
    stream: TcpStream,
    router: Router,
    live: &Live,
    stopped: watch::Receiver<bool>,
) -> io::Result<()> {
    // What is served is small, and waited for.
    stream.set_nodelay(true)?;
    match live.config().tls.clone() {
        None => requests(stream, router, stopped).await,
        Some(tls) => {
            let stream = timeout(HANDSHAKE, TlsAcceptor::from(tls).accept(stream)).await??;
            requests(stream, router, stopped).await
        }
    }
}

/// Answers the requests of one connection.
pub(crate) async fn requests(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(LONGEST_HEAD);
    // A client that has said all it had to say is still answered.
    http.half_close(true);
    let service = TowerToHyperService::new(router);
    let connection = http.serve_connection(TokioIo::new(Box::pin(stream)), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    ended.map_err(io::Error::other)
}
