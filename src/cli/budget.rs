//! `leasehold budget`.

use clap::Args;

use super::{
    Exit,
    broker::{Failed, Target},
    flag,
    output::{Output, caller},
};
use crate::v1::{CallerBudget, SetCallerBudgetRequest};

/// `leasehold budget`.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Budget {
    /// Whose: a business process, or "unattributed" for calls that name none
    #[arg(value_name = "CALLER")]
    of: String,
    /// Lanes of each replica that it may hold at once, settling included; no cap where absent
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    max_lanes: Option<u32>,
    /// A request that the budget keeps waiting for longer is refused [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = flag::timeout)]
    max_wait: Option<std::time::Duration>,
    /// Part of all lane time that it gets while others wait, above 0 to 1; no cap where absent
    #[arg(long, value_name = "PART")]
    share: Option<f64>,
    /// Take away what was set: the configuration's budget holds again
    #[arg(long, conflicts_with_all = ["max_lanes", "max_wait", "share"])]
    remove: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

impl Budget {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        if !self.remove && self.max_lanes.is_none() && self.max_wait.is_none() && self.share.is_none() {
            let text = "no budget was given: say --max-lanes, --max-wait or --share, or --remove; 'leasehold holds' shows what holds now";
            return Err(Failed::new(Exit::BadConfiguration, text));
        }
        let broker = self.target.connect().await?;
        let max_wait = self.max_wait.map(prost_types::Duration::try_from).transpose();
        let max_wait = max_wait.map_err(|_| Failed::new(Exit::BadConfiguration, "--max-wait: is too long"))?;
        let budget = (!self.remove).then(|| CallerBudget {
            max_lanes: self.max_lanes.unwrap_or_default(),
            max_wait,
            share: self.share.unwrap_or_default(),
            source: 0,
        });
        let request = SetCallerBudgetRequest { caller: self.of.clone(), budget };
        let answer = broker.connections().set_caller_budget(broker.call(request)).await?.into_inner();
        if self.output.json {
            Output::object(&caller::budget(answer.budget.as_ref()))?;
        } else {
            let now = answer.budget.as_ref().map_or_else(|| "no budget".to_owned(), caller::budget_text);
            Output::line(&format!("{}: {now}", self.of))?;
        }
        Ok(Exit::Ok)
    }
}
