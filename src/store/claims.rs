//! Claims, undoing those whose outcome is unknown, and looks at what there is to claim and what is still leased.

use std::{sync::Arc, time::Duration};

use super::{
    Store,
    counts::Counts,
    engine::{Claim, ClaimedJob, LeaseRef, LeaseState, LookSpot, Sighting},
    statement::Statement,
};
use crate::model::{Caller, Failure, LeaseId, Outcome};

/// Pauses before what a lost claim may have leased is looked for again: its statement may still be under way in the database.
const UNSEEN_AGAIN: [Duration; 4] =
    [Duration::ZERO, Duration::from_secs(5), Duration::from_secs(30), Duration::from_secs(60)];

impl Store {
    /// Claims of several queues, each of which comes once, for the streams of one caller: all or nothing. Where the outcome is
    /// unknown, whatever they may have leased is given back, at once and again after 5, 30 and 60 s.
    pub async fn claim(&self, caller: &Caller, claims: Vec<Claim>) -> Result<Vec<ClaimedJob>, Failure> {
        let leases: Vec<LeaseId> = claims.iter().flat_map(|claim| &claim.slots).map(|slot| slot.lease).collect();
        let begun: Vec<_> = claims.iter().map(|claim| (claim.queue, claim.floors)).collect();
        let call = self.own(caller.clone());
        let (by, spans, producers) = (caller.clone(), self.inner.counts.spans().clone(), Arc::default());
        let of_jobs = Arc::clone(&producers);
        let claimed = self
            .single_for(&call, Statement::writing("claim"), producers, move |session| {
                Box::pin(async move {
                    let jobs = session.claim(&by, &claims).await?;
                    // Set once: the act runs once.
                    drop(of_jobs.set(Counts::producers(&spans, &jobs)));
                    Ok(jobs)
                })
            })
            .await;
        if claimed.is_ok() {
            for (queue, floors) in begun {
                self.inner.floors.claimed(queue, floors);
            }
        }
        self.inner.counts.claimed(claimed.as_deref().ok());
        if claimed.as_ref().is_err_and(|failure| failure.outcome == Outcome::Unknown) {
            tokio::spawn(self.clone().give_back_unseen(leases));
        }
        claimed
    }

    async fn give_back_unseen(self, leases: Vec<LeaseId>) {
        for pause in UNSEEN_AGAIN {
            tokio::time::sleep(pause).await;
            let (caller, leases) = (Caller::broker("dispatcher"), leases.clone());
            let call = self.own(caller.clone());
            let given = self
                .single(&call, Statement::writing("give_back_unseen"), move |session| {
                    Box::pin(async move { session.give_back_unseen(&caller, &leases).await })
                })
                .await;
            match given {
                Ok(queues) if !queues.is_empty() => self.inner.lanes.look_at_everything(),
                Ok(_) => {}
                Err(failure) => {
                    tracing::warn!(%failure, "jobs of a lost claim were not given back; they come back when their leases expire");
                }
            }
        }
    }

    /// The first waiting job of each queue and priority.
    pub async fn look(&self, spots: Vec<LookSpot>) -> Result<Vec<Sighting>, Failure> {
        let caller = Caller::broker("dispatcher");
        self.single(&self.own(caller.clone()), Statement::reading("look"), move |session| {
            Box::pin(async move { session.look(&caller, &spots).await })
        })
        .await
    }

    /// Which leases still hold.
    pub async fn inspect(&self, leases: Vec<LeaseRef>) -> Result<Vec<LeaseState>, Failure> {
        let caller = Caller::broker("dispatcher");
        self.single(&self.own(caller.clone()), Statement::reading("inspect"), move |session| {
            Box::pin(async move { session.inspect(&caller, &leases).await })
        })
        .await
    }
}
