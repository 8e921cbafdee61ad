//! The accept loop of the second port.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, warn};

use super::Probes;

/// Pause after a failed accept: out of descriptors, trying again at once would only burn the processor.
const PAUSE: Duration = Duration::from_millis(100);

/// How the second port treats its connections. Each serves one request, so that none has to be kept.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Where to listen; port 0 is any free one.
    pub listen: SocketAddr,
    /// Connections open at once; more wait in the kernel.
    pub connections: usize,
    /// How long a client may take for its headers, and then for its answer.
    pub patience: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 7071)), connections: 64, patience: Duration::from_secs(10) }
    }
}

/// A bound socket that is not served yet.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    options: HttpOptions,
}

impl HttpServer {
    /// Binds the socket, so that a fault shows before anything else has started.
    pub async fn bind(options: HttpOptions) -> io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(options.listen).await?, options })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `stop` is cancelled, which ends connections on the spot.
    pub async fn run(self, probes: Probes, stop: CancellationToken) {
        let service = TowerToHyperService::new(probes.router());
        let room = Arc::new(Semaphore::new(self.options.connections));
        let open = TaskTracker::new();
        let accepting = async {
            loop {
                let permit = room.clone().acquire_owned().await.expect("nobody closes the semaphore");
                match self.listener.accept().await {
                    Ok((stream, _)) => {
                        let served = serve(stream, service.clone(), self.options.patience);
                        let stop = stop.clone();
                        open.spawn(async move {
                            stop.run_until_cancelled(served).await;
                            drop(permit);
                        });
                    }
                    Err(error) => {
                        warn!(%error, "accepting no connections on the second port");
                        sleep(PAUSE).await;
                    }
                }
            }
        };
        stop.run_until_cancelled(accepting).await;
        open.close();
        open.wait().await;
    }
}

async fn serve(stream: TcpStream, service: TowerToHyperService<axum::Router>, patience: Duration) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    match timeout(2 * patience, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "connection to the second port broke off"),
        Err(_) => debug!("connection to the second port was cut: its client does not read"),
    }
}

#[cfg(test)]
mod tests;
