//! `leasehold stock disable`, `enable` and `switches`.

use clap::{ArgGroup, Args};

use crate::{
    cli::{
        Exit,
        broker::{Failed, Target},
        exit::note,
        output::{Output, confirm::Confirm, stock},
    },
    v1::{ListStockSwitchesRequest, SetStockSwitchRequest},
};

/// Which items.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("items").args(["prefix", "all"]).required(true))]
struct Items {
    /// Items whose names begin with it
    #[arg(value_name = "PREFIX", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    prefix: Option<String>,
    /// All items
    #[arg(long)]
    all: bool,
}

/// `leasehold stock disable`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Disable {
    #[command(flatten)]
    items: Items,
    /// Why: told to everybody who reserves
    #[arg(long, value_name = "TEXT", required = true, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: String,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

/// `leasehold stock enable`.
#[derive(Debug, Args)]
#[command(
    after_help = "Takes away the switch that was set for this very prefix. Others that cover the same items stay."
)]
pub(in crate::cli) struct Enable {
    #[command(flatten)]
    items: Items,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

/// `leasehold stock switches`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Switches {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

impl Items {
    fn text(&self) -> String {
        self.prefix.as_ref().map_or_else(|| "all items".to_owned(), |prefix| format!("items that begin with {prefix}"))
    }
}

impl Disable {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        self.confirm.ask(&format!("Stop reservations of {}", self.items.text()))?;
        let (item_prefix, disabled) = (self.items.prefix.clone().unwrap_or_default(), true);
        let request = SetStockSwitchRequest { item_prefix, disabled, reason: self.reason };
        let answer = broker.stock_admin().set_stock_switch(broker.call(request)).await?.into_inner();
        note(&format_args!("reservations of {} are stopped", self.items.text()));
        print(self.output, answer.stock_switch.as_slice())
    }
}

impl Enable {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let item_prefix = self.items.prefix.clone().unwrap_or_default();
        let request = SetStockSwitchRequest { item_prefix, disabled: false, reason: String::new() };
        broker.stock_admin().set_stock_switch(broker.call(request)).await?;
        note(&format_args!("the switch of {} is gone", self.items.text()));
        let left = broker.stock_admin().list_stock_switches(broker.call(ListStockSwitchesRequest {})).await?;
        print(self.output, &left.into_inner().switches)
    }
}

impl Switches {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let answer = broker.stock_admin().list_stock_switches(broker.call(ListStockSwitchesRequest {})).await?;
        print(self.output, &answer.into_inner().switches)
    }
}

fn print(output: Output, switches: &[crate::v1::StockSwitch]) -> Result<Exit, Failed> {
    if output.json {
        switches.iter().try_for_each(|one| Output::object(&stock::switch_json(one)))?;
    } else {
        Output::table(&stock::switches(switches), "no reservations are stopped")?;
    }
    Ok(Exit::Ok)
}
