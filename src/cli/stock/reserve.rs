//! `leasehold stock reserve` and `find`.

use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};

use super::given;
use crate::{
    cli::{
        Exit,
        broker::{Failed, Target},
        exit::note,
        flag,
        output::{Output, stock},
    },
    v1::{
        GetReservationRequest, NewJob, ReservationLine, ReserveRequest, Shadow, ShadowOutcome,
        get_reservation_request::By,
    },
};

/// `leasehold stock reserve`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Reserve {
    /// Names the reservation, such as a checkout's id: the same reference again answers with the same reservation
    reference: String,
    /// Units to hold; all lines or none
    #[arg(value_name = "ITEM@LOCATION=QUANTITY", required = true, value_parser = given::line)]
    lines: Vec<ReservationLine>,
    /// How long they are held [default: 15m]
    #[arg(long, value_name = "TIME", value_parser = flag::span)]
    ttl: Option<Duration>,
    /// A job to enqueue with the reservation; may be given several times
    #[arg(long, value_name = "QUEUE=PAYLOAD", value_parser = given::job)]
    job: Vec<NewJob>,
    /// A job to enqueue when the reservation expires; may be given several times
    #[arg(long, value_name = "QUEUE=PAYLOAD", value_parser = given::job)]
    job_on_expiry: Vec<NewJob>,
    /// What another system answered, which this mirrors: says whether the broker agrees, and does not fail where it does not
    #[arg(long, value_name = "ANSWER", value_enum)]
    shadow: Option<Answer>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Answer {
    /// It holds the units
    Held,
    /// It has too few
    SoldOut,
}

impl From<Answer> for ShadowOutcome {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Held => Self::Held,
            Answer::SoldOut => Self::SoldOut,
        }
    }
}

/// `leasehold stock find`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").args(["reservation", "reference"]).required(true))]
pub(in crate::cli) struct Find {
    /// The reservation's id
    reservation: Option<String>,
    /// The reference that it was made with
    #[arg(long, value_name = "KEY")]
    reference: Option<String>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

impl Reserve {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let request = ReserveRequest {
            reference: self.reference,
            lines: self.lines,
            time_to_live: self.ttl.map(flag::wire),
            jobs: self.job,
            jobs_on_expiry: self.job_on_expiry,
            shadow: self.shadow.map(|answer| Shadow { expected: ShadowOutcome::from(answer).into() }),
        };
        let answer = broker.stock().reserve(broker.call(request)).await?.into_inner();
        if answer.duplicate {
            note(&"the reference was known: this is the earlier reservation, as it is now");
        }
        if let Some(report) = &answer.shadow {
            note(&stock::shadow_text(report));
        }
        let Some(reservation) = answer.reservation else {
            // a shadow of a sale that is not held here
            if self.output.json {
                Output::object(&stock::nothing_held_json(answer.shadow.as_ref()))?;
            }
            return Ok(Exit::Ok);
        };
        stock::print(self.output, &reservation, &answer.job_ids, answer.shadow.as_ref())
    }
}

impl Find {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let by = self.reservation.map(By::ReservationId).or(self.reference.map(By::Reference));
        let answer = broker.stock().get_reservation(broker.call(GetReservationRequest { by })).await?.into_inner();
        stock::print_some(self.output, answer.reservation.as_ref(), &[])
    }
}
