//! `leasehold stock show` and `ledger`.

use clap::Args;

use crate::{
    cli::{
        Exit,
        broker::{Failed, Target},
        output::{Output, stock},
        pages,
    },
    v1::{GetStockRequest, ListLedgerRequest, StockKey},
};

/// `leasehold stock show`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Show {
    /// The item
    item: String,
    /// Only at this location
    #[arg(long, value_name = "LOCATION", default_value = "", hide_default_value = true)]
    location: String,
    /// Print at most so many
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    limit: u32,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

/// `leasehold stock ledger`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Ledger {
    /// The item
    item: String,
    /// The location
    #[arg(long, value_name = "LOCATION")]
    location: String,
    /// Print at most so many
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    limit: u32,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

impl Show {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let ask = async |page_size, page_token| {
            let (item, location) = (self.item.clone(), self.location.clone());
            let request = GetStockRequest { item, location, page_size, page_token };
            let page = broker.stock().get_stock(broker.call(request)).await?.into_inner();
            Ok((page.stocks, page.next_page_token))
        };
        let mut all = Vec::new();
        pages::walk(self.limit, pages::PAGE, ask, |stocks| {
            if self.output.json {
                return self.output.stocks(&stocks);
            }
            all.extend(stocks);
            Ok(())
        })
        .await?;
        if !self.output.json {
            self.output.stocks(&all)?;
        }
        Ok(Exit::Ok)
    }
}

impl Ledger {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let key = StockKey { item: self.item, location: self.location };
        let ask = async |page_size, page_token| {
            let request = ListLedgerRequest { key: Some(key.clone()), page_size, page_token };
            let page = broker.stock_admin().list_ledger(broker.call(request)).await?.into_inner();
            Ok((page.entries, page.next_page_token))
        };
        let mut all = Vec::new();
        pages::walk(self.limit, pages::PAGE, ask, |entries| {
            if self.output.json {
                return entries.iter().try_for_each(|entry| Output::object(&stock::entry_json(entry)));
            }
            all.extend(entries);
            Ok(())
        })
        .await?;
        if !self.output.json {
            Output::table(&stock::ledger(&all), "no entry")?;
        }
        Ok(Exit::Ok)
    }
}
