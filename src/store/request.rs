//! A request on its way from asker to lane.
//!
//! One atomic, shared by both, decides between withdrawn and sent: what no lane has taken when its deadline passes was not
//! applied, what one has taken is unknown.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU8, Ordering::SeqCst},
    },
    time::Instant,
};

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::{
    engine::{AckedRow, EnqueuedRow, ExtendRow, ExtendedRow, JobRow, LeaseRef, NackRow, NackedRow, Session},
    error::EngineError,
    line::{Kind, Queued},
    retry::Conflicts,
    statement::Statement,
};
use crate::telemetry::spans::{Origin, Producers};

const QUEUED: u8 = 0;
const TAKEN: u8 = 1;
const WITHDRAWN: u8 = 2;

/// The atomic.
#[derive(Debug, Clone)]
pub(super) struct Ticket(Arc<AtomicU8>);

impl Ticket {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicU8::new(QUEUED)))
    }

    /// The lane's side: true where the request is still wanted.
    pub(super) fn take(&self) -> bool {
        self.0.compare_exchange(QUEUED, TAKEN, SeqCst, SeqCst).is_ok()
    }

    /// The lane's side: nothing was sent; the request waits again.
    pub(super) fn put_back(&self) {
        self.0.store(QUEUED, SeqCst);
    }

    /// The asker's side: true where no lane had taken the request, and none will.
    pub(super) fn withdraw(&self) -> bool {
        self.0.compare_exchange(QUEUED, WITHDRAWN, SeqCst, SeqCst).is_ok()
    }
}

/// A request that may be merged with its like: items in, as many answers out.
#[derive(Debug)]
pub(super) struct Ask<I, A> {
    pub(super) items: Vec<I>,
    pub(super) bytes: usize,
    pub(super) ticket: Ticket,
    pub(super) queued_at: Instant,
    pub(super) origin: Origin,
    pub(super) reply: oneshot::Sender<Result<Vec<A>, EngineError>>,
}

/// An act on its own. It replies by itself and hands back what went wrong, so that the lane knows whether the connection
/// can be used again.
pub(super) type Act =
    Box<dyn for<'a> FnOnce(&'a mut dyn Session) -> BoxFuture<'a, Result<(), EngineError>> + Send + 'static>;

/// An act on its own, waiting for a lane.
pub(super) struct Single {
    pub(super) act: Act,
    pub(super) statement: Statement,
    pub(super) ticket: Ticket,
    pub(super) queued_at: Instant,
    pub(super) origin: Origin,
    /// Counted as the act meets them.
    pub(super) conflicts: Conflicts,
    /// Of a claim: whose jobs came, once its statement has ended.
    pub(super) producers: Arc<OnceLock<Producers>>,
}

/// Everything that can stand in the line.
pub(super) enum Request {
    Enqueue(Ask<JobRow, EnqueuedRow>),
    Ack(Ask<LeaseRef, AckedRow>),
    Nack(Ask<NackRow, NackedRow>),
    Extend(Ask<ExtendRow, ExtendedRow>),
    GiveBack(Ask<LeaseRef, bool>),
    Single(Single),
}

impl Request {
    pub(super) fn ticket(&self) -> &Ticket {
        match self {
            Self::Enqueue(ask) => &ask.ticket,
            Self::Ack(ask) => &ask.ticket,
            Self::Nack(ask) => &ask.ticket,
            Self::Extend(ask) => &ask.ticket,
            Self::GiveBack(ask) => &ask.ticket,
            Self::Single(single) => &single.ticket,
        }
    }
}

impl Request {
    /// What it is called in metrics, spans and the ledger.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Single(single) => single.statement.name,
            merged => merged.kind().name(),
        }
    }

    /// For which call it runs.
    pub(super) fn origin(&self) -> &Origin {
        match self {
            Self::Enqueue(ask) => &ask.origin,
            Self::Ack(ask) => &ask.origin,
            Self::Nack(ask) => &ask.origin,
            Self::Extend(ask) => &ask.origin,
            Self::GiveBack(ask) => &ask.origin,
            Self::Single(single) => &single.origin,
        }
    }

    /// Whether its asker has gone. Of an act on its own nobody knows.
    pub(super) fn is_abandoned(&self) -> bool {
        match self {
            Self::Enqueue(ask) => ask.reply.is_closed(),
            Self::Ack(ask) => ask.reply.is_closed(),
            Self::Nack(ask) => ask.reply.is_closed(),
            Self::Extend(ask) => ask.reply.is_closed(),
            Self::GiveBack(ask) => ask.reply.is_closed(),
            Self::Single(_) => false,
        }
    }
}

impl Queued for Request {
    fn kind(&self) -> Kind {
        match self {
            Self::Enqueue(ask) => {
                let keyed = |row: &JobRow| row.job.idempotency_key.is_some() || row.job.ordering_key.is_some();
                if ask.items.iter().any(keyed) { Kind::EnqueueKeyed } else { Kind::Enqueue }
            }
            Self::Ack(_) => Kind::Ack,
            Self::Nack(_) => Kind::Nack,
            Self::Extend(_) => Kind::Extend,
            Self::GiveBack(_) => Kind::GiveBack,
            Self::Single(single) => {
                if single.statement.reads {
                    Kind::Read
                } else {
                    Kind::Write
                }
            }
        }
    }

    fn items(&self) -> usize {
        match self {
            Self::Enqueue(ask) => ask.items.len(),
            Self::Ack(ask) => ask.items.len(),
            Self::Nack(ask) => ask.items.len(),
            Self::Extend(ask) => ask.items.len(),
            Self::GiveBack(ask) => ask.items.len(),
            Self::Single(_) => 1,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Enqueue(ask) => ask.bytes,
            Self::Ack(ask) => ask.bytes,
            Self::Nack(ask) => ask.bytes,
            Self::Extend(ask) => ask.bytes,
            Self::GiveBack(ask) => ask.bytes,
            Self::Single(single) => single.statement.bytes,
        }
    }

    fn queued_at(&self) -> Instant {
        match self {
            Self::Enqueue(ask) => ask.queued_at,
            Self::Ack(ask) => ask.queued_at,
            Self::Nack(ask) => ask.queued_at,
            Self::Extend(ask) => ask.queued_at,
            Self::GiveBack(ask) => ask.queued_at,
            Self::Single(single) => single.queued_at,
        }
    }

    fn take(&self) -> bool {
        self.ticket().take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_either_withdrawn_or_taken_never_both() {
        let ticket = Ticket::new();
        assert!(ticket.take());
        assert!(!ticket.withdraw(), "a lane has it: the outcome is the lane's to tell");
        ticket.put_back();
        assert!(ticket.withdraw(), "nothing was sent, so it can still be withdrawn");
        assert!(!ticket.take(), "no lane takes what was withdrawn");
    }
}
