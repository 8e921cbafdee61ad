//! What the passes of upkeep ask of the database.

use super::{
    Store,
    engine::{Adopted, Pruned, Reaped},
    statement::Statement,
};
use crate::model::{Caller, Failure, Timestamp};

impl Store {
    /// See [`super::engine::Maintaining::adopt_arrivals`].
    pub async fn adopt_arrivals(&self, floor: i64, limit: usize) -> Result<Adopted, Failure> {
        let caller = Caller::broker("dispatcher");
        self.single(&self.own(caller.clone()), Statement::writing("adopt_arrivals"), move |session| {
            Box::pin(async move { session.adopt_arrivals(&caller, floor, limit).await })
        })
        .await
    }

    /// See [`super::engine::Maintaining::reap`].
    pub async fn reap(&self, floor: Timestamp, arrivals: i64, limit: usize) -> Result<Reaped, Failure> {
        let caller = Caller::broker("reaper");
        let reaped = self
            .single(&self.own(caller.clone()), Statement::writing("reap"), move |session| {
                Box::pin(async move { session.reap(&caller, floor, arrivals, limit).await })
            })
            .await?;
        self.inner.floors.reaped(reaped.floor);
        self.inner.counts.reaped(&reaped);
        Ok(reaped)
    }

    /// See [`super::engine::Maintaining::prune_dead`].
    pub async fn prune_dead(&self, floor: Timestamp, limit: usize) -> Result<Pruned, Failure> {
        let caller = Caller::broker("pruner");
        self.single(&self.own(caller.clone()), Statement::writing("prune_dead"), move |session| {
            Box::pin(async move { session.prune_dead(&caller, floor, limit).await })
        })
        .await
    }

    /// See [`super::engine::Maintaining::prune_keys`].
    pub async fn prune_keys(&self, floor: Timestamp, limit: usize) -> Result<Pruned, Failure> {
        let caller = Caller::broker("pruner");
        self.single(&self.own(caller.clone()), Statement::writing("prune_keys"), move |session| {
            Box::pin(async move { session.prune_keys(&caller, floor, limit).await })
        })
        .await
    }
}
