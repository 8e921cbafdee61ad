//! Calls and connections over a real socket, with a service that needs no database.

mod calls;
mod connections;
mod raw;

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::Stream;
use tokio::{
    sync::{Notify, mpsc},
    task::JoinHandle,
    time::timeout,
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Request, Response, Status, service::Routes, transport::Channel};
use tonic_types::StatusExt;

use super::{
    Server, ServerOptions,
    connection::Connection,
    layers::{CallScope, LayerOptions, Layers},
    status,
};
use crate::{
    model::{Failure, Reason},
    v1::{
        self, lease_response::Frame, queue_service_client::QueueServiceClient, queue_service_server::QueueServiceServer,
    },
};

/// No step of a test takes this long; only a failed one does.
const PATIENCE: Duration = Duration::from_secs(20);

/// Each of its calls does one thing that a call can do to a server.
#[derive(Clone, Default)]
struct Scripted {
    entered: Arc<Notify>,
    release: Arc<Notify>,
    running: Arc<AtomicUsize>,
}

/// Counts a call while it lives.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn scope<T>(request: &Request<T>) -> CallScope {
    request.extensions().get::<CallScope>().expect("behind the layers").clone()
}

#[tonic::async_trait]
impl v1::queue_service_server::QueueService for Scripted {
    type LeaseStream = Pin<Box<dyn Stream<Item = Result<v1::LeaseResponse, Status>> + Send>>;

    /// Has a bug.
    async fn enqueue(&self, _: Request<v1::EnqueueRequest>) -> Result<Response<v1::EnqueueResponse>, Status> {
        panic!("on purpose");
    }

    /// Opens, then waits for its connection to grow old and drains.
    async fn lease(&self, request: Request<v1::LeaseRequest>) -> Result<Response<Self::LeaseStream>, Status> {
        let id = scope(&request).id;
        let connection = request.extensions().get::<Connection>().expect("over a connection").clone();
        let room = connection.admit_stream().map_err(|failure| status::of(&failure, id, None))?;
        let running = Running::new(&self.running);
        let (frames, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let _held = (room, running);
            let opened = v1::LeaseResponse { frame: Some(Frame::Opened(v1::Opened::default())) };
            let drain = v1::LeaseResponse { frame: Some(Frame::Drain(v1::Drain::default())) };
            if frames.send(Ok(opened)).await.is_ok() {
                tokio::select! {
                    () = connection.closing().cancelled() => frames.send(Ok(drain)).await.unwrap_or_default(),
                    () = frames.closed() => {}
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    /// Answers.
    async fn ack(&self, _: Request<v1::AckRequest>) -> Result<Response<v1::AckResponse>, Status> {
        Ok(Response::new(v1::AckResponse::default()))
    }

    /// Fails for a reason of its own.
    async fn nack(&self, request: Request<v1::NackRequest>) -> Result<Response<v1::NackResponse>, Status> {
        let scope = scope(&request);
        let failure = Failure::unknown(format!("for {}", scope.caller));
        Err(status::of(&failure, scope.id, Some(scope.deadline)))
    }

    /// Takes until it is let go.
    async fn extend(&self, _: Request<v1::ExtendRequest>) -> Result<Response<v1::ExtendResponse>, Status> {
        let _running = Running::new(&self.running);
        self.entered.notify_one();
        self.release.notified().await;
        Ok(Response::new(v1::ExtendResponse::default()))
    }
}

/// The services behind their layers; health says that nothing is known of the service `nope`.
fn layered(scripted: Scripted, options: &LayerOptions) -> Layers<Routes> {
    let service = QueueServiceServer::new(scripted).max_decoding_message_size(64 << 10);
    let (_, health) = tonic_health::server::health_reporter();
    Layers::new(Routes::new(service).add_service(health).prepare(), options)
}

const LAYERS: LayerOptions = LayerOptions { request_deadline: Duration::from_secs(30), unread_bytes: 1 << 20 };

/// A server on a port of its own.
struct Served {
    address: SocketAddr,
    scripted: Scripted,
    drain: CancellationToken,
    kill: CancellationToken,
    ended: JoinHandle<()>,
}

async fn served(options: ServerOptions) -> Served {
    let server =
        Server::bind(ServerOptions { listen: ([127, 0, 0, 1], 0).into(), connection_age_jitter: 0.0, ..options });
    let server = server.await.expect("bound");
    let address = server.local_addr().expect("an address");
    let scripted = Scripted::default();
    let (drain, kill) = (CancellationToken::new(), CancellationToken::new());
    let ended = tokio::spawn(server.run(layered(scripted.clone(), &LAYERS), drain.clone(), kill.clone()));
    Served { address, scripted, drain, kill, ended }
}

impl Served {
    /// A client with one connection.
    async fn client(&self) -> QueueServiceClient<Channel> {
        QueueServiceClient::connect(format!("http://{}", self.address)).await.expect("connected")
    }

    /// Waits for the server to return.
    async fn ends(self) {
        soon(self.ended).await.expect("ended well");
        assert_eq!(self.scripted.running.load(Ordering::SeqCst), 0, "calls outlived their connections");
    }
}

async fn soon<F: Future>(what: F) -> F::Output {
    timeout(PATIENCE, what).await.expect("in time")
}

/// Asserts that `status` is a failure as the contract has it.
fn assert_fails(status: &Status, code: Code, reason: Reason, outcome: &str) {
    assert_eq!(status.code(), code, "{status:?}");
    let details = status.get_error_details();
    let info = details.error_info().expect("an ErrorInfo");
    assert_eq!((info.domain.as_str(), info.reason.as_str()), ("leasehold", reason.as_str()));
    assert_eq!(status.metadata().get("leasehold-outcome").expect("an outcome"), outcome);
    assert_eq!(details.request_info().expect("an id").request_id.len(), 16);
}
