//! The accept loop and its drain.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use http::{Request, Response};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::body::Body;
use tower::Service;
use tracing::{debug, warn};

use super::connection::{self, Ends};

/// First pause after a failed accept; it doubles up to [`PAUSE_AT_MOST`].
const PAUSE_AT_FIRST: Duration = Duration::from_millis(5);
const PAUSE_AT_MOST: Duration = Duration::from_secs(1);

/// How the server treats its connections.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Where to listen; port 0 is any free one.
    pub listen: SocketAddr,
    /// Connections open at once; more wait in the kernel.
    pub connections: usize,
    /// How long a client may take for its HTTP/2 preface.
    pub preface: Duration,
    /// Age at which a connection's streams are told to drain and no new calls are taken on it.
    pub connection_age: Duration,
    /// Share of the age by which each connection's differs, so that those opened together do not end together.
    pub connection_age_jitter: f64,
    /// How long calls may then take before the connection is cut.
    pub connection_grace: Duration,
    /// HTTP/2 streams of one connection; more wait at the client without a word.
    pub http2_streams: u32,
    /// Lease streams of one connection; more are refused. Below `http2_streams`, so that unary calls still pass.
    pub lease_streams_per_connection: usize,
    /// Bytes of one request's headers.
    pub header_list_bytes: u32,
    /// Bytes kept for a stream that its client does not read.
    pub send_buffer_bytes: usize,
    /// A quiet connection is pinged this often.
    pub keepalive_interval: Duration,
    /// No answer to a ping within this time: the connection is dead.
    pub keepalive_timeout: Duration,
    /// How long calls may take to finish once the server drains.
    pub drain: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7070)),
            connections: 10_000,
            preface: Duration::from_secs(10),
            connection_age: Duration::from_mins(10),
            connection_age_jitter: 0.2,
            connection_grace: Duration::from_mins(1),
            http2_streams: 1_280,
            lease_streams_per_connection: 1_024,
            header_list_bytes: 16 << 10,
            send_buffer_bytes: 64 << 10,
            keepalive_interval: Duration::from_secs(30),
            keepalive_timeout: Duration::from_secs(10),
            drain: Duration::from_secs(25),
        }
    }
}

/// A bound socket that is not served yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    options: Arc<ServerOptions>,
}

impl Server {
    /// Binds the socket, so that a fault shows before anything else has started.
    pub async fn bind(options: ServerOptions) -> io::Result<Self> {
        let listener = TcpListener::bind(options.listen).await?;
        Ok(Self { listener, options: Arc::new(options) })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `drain` is cancelled; then accepts nothing more, lets calls under way finish for as long as the options
    /// say, and cuts what is left. `kill` cuts everything on the spot. When it returns, no connection and no call is left.
    ///
    /// A drain alone ends no Lease stream: whoever feeds them does.
    pub async fn run<S>(self, service: S, drain: CancellationToken, kill: CancellationToken)
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
        S::Future: Send,
    {
        let Self { listener, options } = self;
        let cut = kill.child_token();
        let _cut_when_dropped = cut.clone().drop_guard();
        let open = TaskTracker::new();
        let mut door = Door { listener, room: Arc::new(Semaphore::new(options.connections)), pause: PAUSE_AT_FIRST };
        loop {
            let (stream, peer, permit) = tokio::select! {
                biased;
                () = drain.cancelled() => break,
                () = cut.cancelled() => break,
                accepted = door.accept() => accepted,
            };
            let age = options.connection_age.mul_f64(jitter(options.connection_age_jitter, rand::random()));
            let ends = Ends { drain: drain.clone(), cut: cut.clone() };
            let served = connection::serve(stream, peer, service.clone(), options.clone(), age, ends);
            open.spawn(async move {
                served.await;
                drop(permit);
            });
        }
        drop(door);
        open.close();
        let drained = tokio::select! {
            drained = timeout(options.drain, open.wait()) => drained.is_ok(),
            () = cut.cancelled() => false,
        };
        if !drained {
            warn!(connections = open.len(), "cutting connections that did not end in time");
            cut.cancel();
            open.wait().await;
        }
    }
}

/// A factor between 1 - `share` and 1 + `share`, for a `fraction` drawn evenly from 0 to 1.
fn jitter(share: f64, fraction: f64) -> f64 {
    (1.0 + share * (2.0 * fraction - 1.0)).max(0.0)
}

/// Where connections come in.
struct Door {
    listener: TcpListener,
    room: Arc<Semaphore>,
    pause: Duration,
}

impl Door {
    /// The next connection, once there is room for it. Nothing is lost when this is dropped halfway.
    async fn accept(&mut self) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
        let permit = self.room.clone().acquire_owned().await.expect("nobody closes the semaphore");
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    self.pause = PAUSE_AT_FIRST;
                    return (stream, peer, permit);
                }
                Err(error) if is_the_clients(&error) => debug!(%error, "connection was gone before it was accepted"),
                Err(error) => {
                    // Out of descriptors or memory: trying again at once would only burn the processor.
                    if self.pause == PAUSE_AT_FIRST {
                        warn!(%error, "accepting no connections");
                    }
                    sleep(self.pause).await;
                    self.pause = (self.pause * 2).min(PAUSE_AT_MOST);
                }
            }
        }
    }
}

fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
