//! One client connection, from its first byte to its last call.

use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::pin,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http2};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::TcpStream,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::{body::Body, transport::server::Connected};
use tower::{Service, ServiceExt};
use tracing::debug;

use super::{preface::Preface, server::ServerOptions};
use crate::model::{Failure, Reason};

/// What every call knows of the connection that it came over. In the extensions of every request, so cloned for each: one
/// count, where the tokens in it would take a lock each.
#[derive(Debug, Clone)]
pub(super) struct Connection(Arc<Facts>);

#[derive(Debug)]
struct Facts {
    peer: SocketAddr,
    closing: CancellationToken,
    ending: CancellationToken,
    lease_streams: Arc<Semaphore>,
    lease_streams_at_most: usize,
}

impl Connection {
    fn new(peer: SocketAddr, options: &ServerOptions) -> Self {
        Self(Arc::new(Facts {
            peer,
            closing: CancellationToken::new(),
            ending: CancellationToken::new(),
            lease_streams: Arc::new(Semaphore::new(options.lease_streams_per_connection)),
            lease_streams_at_most: options.lease_streams_per_connection,
        }))
    }

    /// Who is at the other end.
    pub(super) fn peer(&self) -> SocketAddr {
        self.0.peer
    }

    /// Cancelled once the connection has reached its age: its Lease streams are to drain.
    pub(super) fn closing(&self) -> &CancellationToken {
        &self.0.closing
    }

    /// Cancelled once no new calls are taken, for whatever reason: streams that would go on for ever are to end.
    pub(super) fn ending(&self) -> &CancellationToken {
        &self.0.ending
    }

    /// Room for one more Lease stream, for as long as the permit lives. HTTP/2's own limit, which lies higher, would let
    /// the client wait without a word.
    pub(super) fn admit_stream(&self) -> Result<OwnedSemaphorePermit, Failure> {
        self.0.lease_streams.clone().try_acquire_owned().map_err(|_| {
            let most = self.0.lease_streams_at_most;
            let message = format!("this connection has {most} Lease streams, which is as many as it may");
            Failure::not_applied(Reason::StreamLimit, message).about(format!("connection:{}", self.0.peer))
        })
    }
}

/// Runs a connection's calls, so that they end with it: dropping a connection alone would leave them running.
#[derive(Clone)]
struct CallExecutor {
    calls: TaskTracker,
    end: CancellationToken,
}

impl<F> hyper::rt::Executor<F> for CallExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, call: F) {
        let end = self.end.clone();
        self.calls.spawn(async move { end.run_until_cancelled(call).await.map(drop) });
    }
}

/// What ends connections from outside.
#[derive(Debug, Clone)]
pub(super) struct Ends {
    /// No new calls; those under way may finish.
    pub(super) drain: CancellationToken,
    /// On the spot.
    pub(super) cut: CancellationToken,
}

/// Serves one connection until its end: the client's, its `age` and grace, that of a drain, or a cut. Returns when none of
/// its calls runs any more.
pub(super) async fn serve<S>(
    stream: TcpStream,
    peer: SocketAddr,
    service: S,
    options: Arc<ServerOptions>,
    age: Duration,
    ends: Ends,
) where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    if let Err(error) = stream.set_nodelay(true) {
        debug!(client.address = %peer, %error, "connection was gone before it began");
        return;
    }
    let connection = Connection::new(peer, &options);
    let (calls, end) = (TaskTracker::new(), CancellationToken::new());
    let service = with_connection(service, &stream, &connection);
    let stream = Preface::new(stream, options.preface);
    let whole = stream.whole();
    let served = http2::Builder::new(CallExecutor { calls: calls.clone(), end: end.clone() })
        .timer(TokioTimer::new())
        .max_concurrent_streams(options.http2_streams)
        .max_header_list_size(options.header_list_bytes)
        .max_send_buf_size(options.send_buffer_bytes)
        .keep_alive_interval(options.keepalive_interval)
        .keep_alive_timeout(options.keepalive_timeout)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    {
        let mut served = pin!(served);
        let grace = tokio::select! {
            ended = served.as_mut() => Err(ended),
            () = sleep(age) => {
                connection.closing().cancel();
                Ok(options.connection_grace)
            }
            // Who has not said yet that it speaks HTTP/2 has no call to finish.
            () = ends.drain.cancelled() => if whole.load(Relaxed) { Ok(options.drain) } else { Err(Ok(())) },
            () = ends.cut.cancelled() => Err(Ok(())),
        };
        let ended = match grace {
            Err(ended) => ended,
            Ok(grace) => {
                connection.ending().cancel();
                served.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = served.as_mut() => ended,
                    () = sleep(grace) => Ok(()),
                    () = unheard(&calls, options.keepalive_timeout) => Ok(()),
                    () = ends.cut.cancelled() => Ok(()),
                }
            }
        };
        if let Err(error) = ended {
            debug!(client.address = %peer, %error, "connection broke off");
        }
    }
    // The connection is gone, so no call can begin any more; those under way have nobody left to answer.
    end.cancel();
    calls.close();
    calls.wait().await;
}

/// Returns when the connection has had no call for `patience`. One that was asked to go ends by itself once its client has
/// answered, which comes with a ping; a client that is gone or silent never does.
async fn unheard(calls: &TaskTracker, patience: Duration) {
    const LOOKS: u32 = 10;
    let mut quiet = 0;
    while quiet < LOOKS {
        sleep(patience / LOOKS).await;
        quiet = if calls.is_empty() { quiet + 1 } else { 0 };
    }
}

/// `service` as this connection's calls see it.
fn with_connection<S>(
    service: S,
    stream: &TcpStream,
    connection: &Connection,
) -> impl Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future = impl Send>
+ Clone
+ Send
+ 'static
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let (addresses, connection) = (stream.connect_info(), connection.clone());
    service.map_request(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(addresses.clone()); // what `tonic::Request::remote_addr` reads
        request.extensions_mut().insert(connection.clone());
        request
    })
}
