//! Jobs as lines on stdout.

use std::time::Duration;

use super::{
    super::output::job,
    Lease,
    stream::{Ask, Event, Stream},
};
use crate::{
    cli::{
        Exit,
        broker::{Broker, Failed},
        exit::note,
        output::Output,
        signals::Signals,
    },
    v1::{AckRequest, LeasedJob, NackAction, NackItem, NackRequest},
};

/// Before a stream that was lost is opened again.
const PAUSE: Duration = Duration::from_millis(100);

/// Prints jobs until there are enough, there is none, or a signal comes.
pub(super) async fn print(lease: &Lease, ask: Ask, mut signals: Signals) -> Result<Exit, Failed> {
    let mut printer = Printer {
        broker: lease.target.connect().await?,
        output: lease.output,
        ack: lease.ack,
        left: lease.count.or((!lease.follow && !lease.ack).then_some(1)),
        printed: 0,
    };
    let ended = tokio::select! {
        ended = printer.run(&ask, lease.parallel) => ended,
        signal = signals.next() => {
            note(&format_args!("leasehold: {signal}"));
            Ok(())
        }
    };
    ended?;
    if printer.printed == 0 {
        note(&"no job is ready");
    }
    Ok(Exit::Ok)
}

struct Printer {
    broker: Broker,
    output: Output,
    ack: bool,
    /// Jobs still to be printed; no bound where absent.
    left: Option<u64>,
    printed: u64,
}

impl Printer {
    async fn run(&mut self, ask: &Ask, parallel: u32) -> Result<(), Failed> {
        while self.left != Some(0) {
            // with a bound each stream brings one job: it is closed when its credit is used up, so none can come that is not wanted
            let credit = if self.left.is_some() { 1 } else { parallel };
            let mut stream = Stream::open(&self.broker, ask, credit, &|text| note(&text)).await?;
            loop {
                match stream.next().await {
                    Event::Jobs(jobs) if self.left.is_some() => {
                        drop(stream);
                        self.take(jobs).await?;
                        break;
                    }
                    Event::Jobs(jobs) => self.take(jobs).await?,
                    Event::Revoked(_) => {}
                    Event::Empty => return Ok(()),
                    Event::Ended(None) => break,
                    Event::Ended(Some(_)) => {
                        tokio::time::sleep(PAUSE).await;
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Prints jobs; what cannot be printed goes back.
    async fn take(&mut self, jobs: Vec<LeasedJob>) -> Result<(), Failed> {
        let mut printed = Vec::new();
        for (n, leased) in jobs.iter().enumerate() {
            let line = if self.output.json {
                Output::object(&job::leased_json(leased))
            } else {
                Output::line(&job::leased_line(leased))
            };
            if let Err(failed) = line {
                self.settle(printed).await?;
                self.give_back(&jobs[n..]).await?;
                return Err(failed);
            }
            self.printed += 1;
            self.left = self.left.map(|left| left.saturating_sub(1));
            printed.push(leased.lease_token.clone());
        }
        self.settle(printed).await
    }

    async fn settle(&self, lease_tokens: Vec<String>) -> Result<(), Failed> {
        if self.ack && !lease_tokens.is_empty() {
            self.broker.queue().ack(self.broker.call(AckRequest { lease_tokens })).await?;
        }
        Ok(())
    }

    async fn give_back(&self, jobs: &[LeasedJob]) -> Result<(), Failed> {
        let item = |job: &LeasedJob| NackItem {
            lease_token: job.lease_token.clone(),
            action: NackAction::Release.into(),
            ..NackItem::default()
        };
        let request = NackRequest { items: jobs.iter().map(item).collect() };
        self.broker.queue().nack(self.broker.call(request)).await?;
        Ok(())
    }
}
