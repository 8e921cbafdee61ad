//! What services enqueued and acked by SQL, in transactions of their own.

use async_trait::async_trait;

use super::{Pass, Step};
use crate::{dispatch::Dispatch, model::Failure, store::Store};

pub(super) struct Arrivals {
    store: Store,
    dispatch: Dispatch,
    floor: i64,
}

impl Arrivals {
    pub(super) fn new(store: Store, dispatch: Dispatch) -> Self {
        Self { store, dispatch, floor: 0 }
    }
}

#[async_trait]
impl Pass for Arrivals {
    fn name(&self) -> &'static str {
        "arrivals"
    }

    fn start_over(&mut self) {
        self.floor = 0;
    }

    async fn run_once(&mut self, limit: usize) -> Result<Step, Failure> {
        let adopted = self.store.adopt_arrivals(self.floor, limit).await?;
        self.floor = adopted.floor;
        if !adopted.readied.is_empty() {
            let ready: Vec<_> = adopted.readied.into_iter().map(|queue| (queue, None)).collect();
            self.dispatch.ready(&ready);
        }
        Ok(Step::of(adopted.rows, limit))
    }
}
