//! A TCP proxy between store and database that does what broken networks do.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// How the proxy behaves towards connections, old and new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Hands everything on.
    Pass,
    /// Hands requests on and loses every answer.
    LoseAnswers,
    /// Closes new connections as soon as they are accepted.
    Refuse,
}

/// A listening proxy; it ends when this is dropped.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    mode: watch::Sender<Mode>,
    connections: Arc<Mutex<CancellationToken>>,
    _end: DropGuard,
}

impl Proxy {
    /// Listens on a free port in front of `upstream`.
    pub(crate) async fn before(upstream: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (mode, seen) = watch::channel(Mode::Pass);
        let end = CancellationToken::new();
        let connections = Arc::new(Mutex::new(end.child_token()));
        let accepting = accept(listener, upstream, seen, Arc::clone(&connections));
        tokio::spawn(end.clone().run_until_cancelled_owned(accepting));
        Self { address, mode, connections, _end: end.drop_guard() }
    }

    /// From now on.
    pub(crate) fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// Closes the connections that are open.
    pub(crate) fn cut(&self) {
        let mut connections = self.connections.lock().expect("not poisoned");
        connections.cancel();
        *connections = CancellationToken::new();
    }
}

async fn accept(
    listener: TcpListener,
    upstream: String,
    mode: watch::Receiver<Mode>,
    connections: Arc<Mutex<CancellationToken>>,
) {
    while let Ok((client, _)) = listener.accept().await {
        if *mode.borrow() == Mode::Refuse {
            continue;
        }
        let cut = connections.lock().expect("not poisoned").clone();
        let (upstream, mode) = (upstream.clone(), mode.clone());
        tokio::spawn(cut.run_until_cancelled_owned(async move {
            if let Ok(server) = TcpStream::connect(upstream).await {
                carry(client, server, mode).await;
            }
        }));
    }
}

async fn carry(client: TcpStream, server: TcpStream, mode: watch::Receiver<Mode>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let requests = async { tokio::io::copy(&mut from_client, &mut to_server).await.is_ok() };
    let answers = async {
        let mut bytes = vec![0; 16 << 10];
        while let Ok(read) = from_server.read(&mut bytes).await {
            let lost = *mode.borrow() == Mode::LoseAnswers;
            if read == 0 || (!lost && to_client.write_all(&bytes[..read]).await.is_err()) {
                break;
            }
        }
    };
    // Whichever side ends first ends the other: both halves are dropped here.
    tokio::select! {
        _ = requests => {}
        () = answers => {}
    }
}
