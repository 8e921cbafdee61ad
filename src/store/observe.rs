//! The facade's side of looking at the database's other users. Each look runs on a lane as `leasehold.sampler`; who asks for
//! one after the other never has more than one under way, however busy the lanes are.

use super::{
    Store,
    engine::{HorizonSeen, SessionsSeen, TableRow},
    statement::Statement,
};
use crate::model::{Caller, Failure};

impl Store {
    /// See [`super::engine::Observing::sessions`].
    pub async fn sessions(&self, at_most: usize) -> Result<SessionsSeen, Failure> {
        let caller = Caller::broker("sampler");
        self.single(&self.own(caller.clone()), Statement::reading("sessions"), move |session| {
            Box::pin(async move { session.sessions(&caller, at_most).await })
        })
        .await
    }

    /// See [`super::engine::Observing::horizon`].
    pub async fn horizon(&self, at_most: usize) -> Result<HorizonSeen, Failure> {
        let caller = Caller::broker("sampler");
        self.single(&self.own(caller.clone()), Statement::reading("horizon"), move |session| {
            Box::pin(async move { session.horizon(&caller, at_most).await })
        })
        .await
    }

    /// See [`super::engine::Observing::tables`].
    pub async fn tables(&self) -> Result<Vec<TableRow>, Failure> {
        let caller = Caller::broker("sampler");
        self.single(&self.own(caller.clone()), Statement::reading("tables"), move |session| {
            Box::pin(async move { session.tables(&caller).await })
        })
        .await
    }
}
