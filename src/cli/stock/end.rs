//! `leasehold stock commit`, `release` and `extend`.

use std::time::Duration;

use clap::Args;

use super::given;
use crate::{
    cli::{
        Exit,
        broker::{Failed, Target},
        exit::note,
        flag,
        output::{Output, stock},
    },
    v1::{CommitReservationRequest, ExtendReservationRequest, NewJob, ReleaseReservationRequest},
};

/// `leasehold stock commit`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Commit {
    /// The reservation's id
    reservation: String,
    /// A job to enqueue with it; may be given several times
    #[arg(long, value_name = "QUEUE=PAYLOAD", value_parser = given::job)]
    job: Vec<NewJob>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

/// `leasehold stock release`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Release {
    /// The reservation's id
    reservation: String,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

/// `leasehold stock extend`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Extend {
    /// The reservation's id
    reservation: String,
    /// How long it is held from now on; never shortens
    #[arg(long, value_name = "TIME", value_parser = flag::span)]
    ttl: Duration,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

impl Commit {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let request = CommitReservationRequest { reservation_id: self.reservation, jobs: self.job };
        let answer = broker.stock().commit_reservation(broker.call(request)).await?.into_inner();
        if answer.duplicate {
            note(&"it was committed already: nothing was changed");
        }
        stock::print_some(self.output, answer.reservation.as_ref(), &answer.job_ids)
    }
}

impl Release {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let request = ReleaseReservationRequest { reservation_id: self.reservation };
        let answer = broker.stock().release_reservation(broker.call(request)).await?.into_inner();
        stock::print_some(self.output, answer.reservation.as_ref(), &[])
    }
}

impl Extend {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let request =
            ExtendReservationRequest { reservation_id: self.reservation, time_to_live: Some(flag::wire(self.ttl)) };
        let answer = broker.stock().extend_reservation(broker.call(request)).await?.into_inner();
        stock::print_some(self.output, answer.reservation.as_ref(), &[])
    }
}
