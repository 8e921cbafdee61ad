//! `leasehold consumers`.

use clap::Args;

use super::{
    Exit,
    broker::{Failed, Target},
    output::{Output, consumer},
    pages,
};
use crate::v1::ListConsumersRequest;

/// `leasehold consumers`.
#[derive(Debug, Args)]
pub(super) struct Consumers {
    /// Only streams that ask for this queue
    #[arg(value_name = "QUEUE")]
    queue: Option<String>,
    /// Print at most so many
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    limit: u32,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

impl Consumers {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let queue = self.queue.unwrap_or_default();
        let ask = async |page_size, page_token| {
            let request = ListConsumersRequest { queue: queue.clone(), page_size, page_token };
            let page = broker.admin().list_consumers(broker.call(request)).await?.into_inner();
            Ok((page.consumers, page.next_page_token))
        };
        let mut all = Vec::new();
        pages::walk(self.limit, pages::PAGE, ask, |consumers| {
            if self.output.json {
                return consumers.iter().try_for_each(|consumer| Output::object(&consumer::json(consumer)));
            }
            all.extend(consumers);
            Ok(())
        })
        .await?;
        if !self.output.json {
            Output::table(&consumer::table(&all), "no stream leases jobs")?;
        }
        Ok(Exit::Ok)
    }
}
