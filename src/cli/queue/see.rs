//! `leasehold queue list` and `show`.

use clap::Args;

use crate::{
    cli::{
        Exit,
        broker::{Failed, Target},
        output::{Output, queue},
        pages,
    },
    v1::{GetQueueRequest, ListQueuesRequest, Queue},
};

/// `leasehold queue list`.
#[derive(Debug, Args)]
pub(in crate::cli) struct List {
    /// Only queues whose names begin with it
    #[arg(value_name = "PREFIX")]
    prefix: Option<String>,
    /// Do not count jobs: counting costs the database some milliseconds for each queue
    #[arg(long)]
    no_counts: bool,
    /// Print at most so many
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    limit: u32,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

/// Queues of a page: counting them all must fit into a call's deadline.
const COUNTED: u32 = 50;

impl List {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let prefix = self.prefix.unwrap_or_default();
        let include_counts = !self.no_counts;
        let ask = async |page_size, page_token| {
            let request = ListQueuesRequest { prefix: prefix.clone(), include_counts, page_size, page_token };
            let page = broker.admin().list_queues(broker.call(request)).await?.into_inner();
            Ok((page.queues, page.next_page_token))
        };
        let mut all = Vec::new();
        pages::walk(self.limit, if include_counts { COUNTED } else { pages::PAGE }, ask, |queues| {
            if self.output.json {
                return queues.iter().try_for_each(|queue| Output::object(&queue::json(queue)));
            }
            all.extend(queues);
            Ok(())
        })
        .await?;
        if !self.output.json {
            Output::table(&queue::table(&all, include_counts), "no queue")?;
        }
        Ok(Exit::Ok)
    }
}

/// `leasehold queue show`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Show {
    /// The queue
    queue: String,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

impl Show {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let request = GetQueueRequest { queue: self.queue };
        print(self.output, broker.admin().get_queue(broker.call(request)).await?.into_inner().queue)
    }
}

/// Prints one queue.
pub(super) fn print(output: Output, queue: Option<Queue>) -> Result<Exit, Failed> {
    let queue = queue.ok_or_else(|| Failed::new(Exit::Bug, "the broker's answer holds no queue"))?;
    if output.json {
        Output::object(&queue::json(&queue))?;
    } else {
        queue::facts(&queue).print()?;
    }
    Ok(Exit::Ok)
}
