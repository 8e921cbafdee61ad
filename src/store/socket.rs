//! The connection's socket, which the driver does not show.
//!
//! Where kernel and container allow it, the process gets a second descriptor of its own socket: to have keepalives and a
//! bound on unacknowledged data, so that a vanished server is noticed, and to see before an act whether the server closed
//! the connection, so that the act can run on another one as if nothing had been. Elsewhere all works without: an act on a
//! closed connection is then unknown rather than known not to be sent.

use std::{
    fs, io,
    mem::MaybeUninit,
    net::{IpAddr, Shutdown, SocketAddr},
    time::Duration,
};

use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use socket2::{Socket, TcpKeepalive};

/// What a look at the socket tells about the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// Nothing speaks against it.
    Quiet,
    /// The server said something unasked, perhaps good-bye.
    Unasked,
    /// The server closed it.
    Closed,
}

/// A second descriptor of a connection's socket.
#[derive(Debug)]
pub(super) struct OwnSocket(Socket);

impl OwnSocket {
    /// The socket whose near end has this port as the server sees it (and this host, where the server says that by number)
    /// and whose far end has the port that we connected to; nothing where there is none, as behind NAT, a proxy or on a Unix
    /// socket.
    fn find(host: Option<&str>, port: Option<i32>, server_port: u16) -> io::Result<Option<Self>> {
        let (Ok(host), Some(Ok(port))) = (host.map(str::parse::<IpAddr>).transpose(), port.map(u16::try_from)) else {
            return Ok(None);
        };
        let is_near_end = |address: SocketAddr| address.port() == port && host.is_none_or(|host| host == address.ip());
        let process = pidfd_open(getpid(), PidfdFlags::empty())?;
        for entry in fs::read_dir("/proc/self/fd")? {
            let entry = entry?;
            // Descriptors may be closed while we look: such are not ours.
            let is_socket = fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
            let Ok(number) = entry.file_name().to_string_lossy().parse() else { continue };
            if !is_socket {
                continue;
            }
            let Ok(descriptor) = pidfd_getfd(&process, number, PidfdGetfdFlags::empty()) else { continue };
            let socket = Socket::from(descriptor);
            let local = socket.local_addr().ok().and_then(|address| address.as_socket());
            let peer = socket.peer_addr().ok().and_then(|address| address.as_socket());
            if local.is_some_and(is_near_end) && peer.map(|peer| peer.port()) == Some(server_port) {
                return Ok(Some(Self(socket)));
            }
        }
        Ok(None)
    }

    /// Makes the kernel notice within some 10 s that the peer is gone.
    fn watch_peer(&self) -> io::Result<()> {
        self.0.set_tcp_nodelay(true)?;
        self.0.set_tcp_user_timeout(Some(Duration::from_secs(10)))?;
        let keepalive =
            TcpKeepalive::new().with_time(Duration::from_secs(5)).with_interval(Duration::from_secs(2)).with_retries(3);
        self.0.set_tcp_keepalive(&keepalive)
    }

    /// Ends the connection as far as this process is concerned: whatever is written from now on goes nowhere.
    pub(super) fn shut(&self) -> io::Result<()> {
        self.0.shutdown(Shutdown::Both)
    }

    /// Looks without taking anything; the driver made the socket non-blocking.
    pub(super) fn sign(&self) -> Sign {
        let mut byte = [MaybeUninit::uninit()];
        match self.0.peek(&mut byte) {
            Ok(0) => Sign::Closed,
            Ok(_) => Sign::Unasked,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Sign::Quiet,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Sign::Unasked,
            Err(_) => Sign::Closed,
        }
    }
}

/// The connection's socket with its options set, where that can be had; what cannot be is said once.
pub(super) async fn watched_socket(host: Option<String>, port: Option<i32>, server_port: u16) -> Option<OwnSocket> {
    static SAID: std::sync::Once = std::sync::Once::new();
    // A look at every descriptor of the process: with many streams that takes a while.
    let found = tokio::task::spawn_blocking(move || {
        let socket = OwnSocket::find(host.as_deref(), port, server_port)?;
        socket.as_ref().map_or(Ok(()), OwnSocket::watch_peer)?;
        Ok(socket)
    });
    match found.await.unwrap_or_else(|ended| Err(io::Error::other(ended))) {
        Ok(socket) => socket,
        Err(error) => {
            SAID.call_once(|| {
                tracing::info!(error = %error.kind(), "keepalives of database connections stay as the system has them");
            });
            None
        }
    }
}
