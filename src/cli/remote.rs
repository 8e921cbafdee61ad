//! The commands that speak to a broker through its public API.

use clap::Subcommand;

use super::{
    Exit, broker::Failed, budget::Budget, consumers::Consumers, dead::Dead, enqueue::Enqueue, holds::Holds,
    job::JobCommand, lease::Lease, ping::Ping, queue::QueueCommand, run_to_end, settle, stock::StockCommand,
};

#[derive(Debug, Subcommand)]
pub(super) enum Remote {
    /// Enqueue jobs: a payload from the command line, a file, or one from each line of stdin
    Enqueue(Enqueue),
    /// Lease jobs: print them, or run a command for each
    Lease(Lease),
    /// End jobs: done
    Ack(settle::Ack),
    /// Give jobs back: for a retry, released without a counted attempt, or rejected to the dead jobs
    Nack(settle::Nack),
    /// Keep leases for longer
    Extend(settle::Extend),
    /// See and steer queues
    #[command(subcommand)]
    Queue(QueueCommand),
    /// See and steer jobs
    #[command(subcommand)]
    Job(JobCommand),
    /// See dead jobs and make them live again
    #[command(subcommand)]
    Dead(Dead),
    /// See, adjust and reserve stock
    #[command(subcommand)]
    Stock(StockCommand),
    /// List the streams that lease jobs, on all replicas
    Consumers(Consumers),
    /// Show which callers hold the database connections, like top
    Holds(Holds),
    /// Cap what a caller may have of the database connections
    Budget(Budget),
    /// Ask the broker who it is
    Ping(Ping),
}

impl Remote {
    /// Runs it, and tells why where it fails.
    pub(super) fn run(self) -> Exit {
        run_to_end(async move { self.talk().await.unwrap_or_else(|failed| failed.tell()) })
    }

    async fn talk(self) -> Result<Exit, Failed> {
        match self {
            Self::Enqueue(enqueue) => enqueue.run().await,
            Self::Lease(lease) => lease.run().await,
            Self::Ack(ack) => ack.run().await,
            Self::Nack(nack) => nack.run().await,
            Self::Extend(extend) => extend.run().await,
            Self::Queue(queue) => queue.run().await,
            Self::Job(job) => job.run().await,
            Self::Dead(dead) => dead.run().await,
            Self::Stock(stock) => stock.run().await,
            Self::Consumers(consumers) => consumers.run().await,
            Self::Holds(holds) => holds.run().await,
            Self::Budget(budget) => budget.run().await,
            Self::Ping(ping) => ping.run().await,
        }
    }
}
