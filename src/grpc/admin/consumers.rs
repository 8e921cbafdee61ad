//! Lease streams of all replicas.

use std::time::Duration;

use super::{AdminApi, jobs::WALK};
use crate::{
    grpc::convert,
    model::Failure,
    store::{Call, engine::StreamsWalk},
    v1,
};

impl AdminApi {
    pub(super) async fn do_list_consumers(
        &self,
        call: &Call,
        request: &v1::ListConsumersRequest,
    ) -> Result<v1::ListConsumersResponse, Failure> {
        let asked = convert::consumers_page(request)?;
        self.dispatch.presence().refresh().await?;
        let walk = StreamsWalk {
            queue: asked.queue,
            after: asked.after,
            absent: Duration::ZERO, // the store's to say
            rows: WALK,
            found: asked.size,
        };
        let page = self.store.list_streams(call, walk).await?;
        Ok(v1::ListConsumersResponse {
            consumers: page.rows.into_iter().map(convert::consumer).collect(),
            next_page_token: convert::next_consumers(request, page.next),
        })
    }
}
