//! What this replica says of itself, every few seconds.

use async_trait::async_trait;

use super::{Pass, Step};
use crate::{dispatch::Dispatch, model::Failure};

pub(super) struct Present {
    dispatch: Dispatch,
}

impl Present {
    pub(super) fn new(dispatch: Dispatch) -> Self {
        Self { dispatch }
    }
}

#[async_trait]
impl Pass for Present {
    fn name(&self) -> &'static str {
        "presence"
    }

    fn start_over(&mut self) {} // it walks nothing

    async fn run_once(&mut self, limit: usize) -> Result<Step, Failure> {
        self.dispatch.presence().report().await?;
        Ok(Step::of(0, limit))
    }

    async fn end(&mut self) {
        self.dispatch.presence().leave().await;
    }
}
