//! Sales of one hot item a second: through the broker, whose pool has a row for each unit, and by bare SQL, where one row counts.
//! Then the same while business transactions lock the item's row and think before they commit.

#![allow(clippy::print_stdout, reason = "a measurement's table is its purpose")]

mod bare;
mod buyers;
mod server;
#[path = "../stand/mod.rs"]
mod stand;

use std::{collections::BTreeMap, process::ExitCode, time::Duration};

use bare::Way;
use buyers::{Phase, Sold, connect, hot, stock_up};
use leasehold::v1::GetStockRequest;
use server::Server;
use stand::{
    Options, Outcome,
    broker::Broker,
    figures::{self, Table, median, quantile, rate, thousands},
};

const BROKER: &str = "broker";
const BARE: &str = "bare";

fn main() -> ExitCode {
    let clients =
        ("clients", "64", "Buyers at once, each with one sale after the other; in bare SQL each has a connection");
    let seconds = ("seconds", "5", "Length of each phase");
    let rounds = ("rounds", "3", "Rounds of all phases, of which the medians count; a further one warms up");
    let rivals = ("rivals", "4", "Business transactions that lock the item's row, one after the other each");
    let think = ("think", "5", "Milliseconds for which each of them thinks before it commits");
    let commit =
        ("commit", "0", "Microseconds that the server waits with each commit, as for a slower disk or a standby");
    let about = "Sells one hot item through the broker and by bare SQL that counts in one row";
    let options =
        Options::parse_on(&["postgres", "mariadb"], about, &[clients, seconds, rounds, rivals, think, commit]);
    options.run(measure(&options))
}

/// A way of selling: the broker's, or one by bare SQL.
type Ware = (&'static str, Option<Way>);

#[derive(Debug, Default)]
struct Figures {
    sales: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
    thoughts: Vec<f64>,
    failed: BTreeMap<String, u64>,
}

async fn measure(options: &Options) -> Outcome<()> {
    let server = Server::start(options.is_mariadb(), options.bindir(), options.number("commit")).await?;
    println!("{}", figures::machine());
    println!(
        "{}, every commit on disk, and {} µs later; {} buyers; {} rounds of {} s; {} transactions that think for {} ms",
        server.version().await?,
        options.number("commit"),
        options.number("clients"),
        options.number("rounds"),
        options.number("seconds"),
        options.number("rivals"),
        options.number("think"),
    );
    let broker = Broker::start(options.broker(), &server.create_database(BROKER).await?, &[]).await?;
    stock_up(&mut connect(broker.address()).await?).await?;
    server.create_database(BARE).await?;
    server.connect(BARE).await?.prepare().await?;

    let mut wares: Vec<Ware> = vec![("broker, a row for each unit", None)];
    if server.has_changes_in_with() {
        wares.push(("one counting row, all in one statement", Some(Way::AtOnce)));
    }
    wares.push(("one counting row, conditional update", Some(Way::Conditional)));
    wares.push(("one counting row, FOR UPDATE", Some(Way::ForUpdate)));
    let mut results: Vec<[Figures; 2]> = wares.iter().map(|_| Default::default()).collect();
    let (mut through_broker, mut by_bare_sql) = (0, 0);
    for round in 0..=options.number("rounds") {
        for (ware, figures) in wares.iter().zip(&mut results) {
            for (rivals, figures) in [0, options.number("rivals")].into_iter().zip(figures) {
                let sold = sell(options, &server, &broker, ware, rivals).await?;
                *if ware.1.is_none() { &mut through_broker } else { &mut by_bare_sql } += sold.took.len();
                if round > 0 {
                    figures.add(sold);
                }
            }
        }
    }
    show(&wares, &results);
    check(&broker, &server, through_broker, by_bare_sql).await?;
    for line in broker.trouble()? {
        println!("  broker: {line}");
    }
    Ok(())
}

async fn sell(options: &Options, server: &Server, broker: &Broker, ware: &Ware, rivals: u64) -> Outcome<Sold> {
    let phase = Phase {
        server,
        database: if ware.1.is_none() { BROKER } else { BARE },
        buyers: options.number("clients"),
        rivals,
        think: Duration::from_millis(options.number("think")),
        length: Duration::from_secs(options.number("seconds")),
    };
    match ware.1 {
        None => phase.through_broker(broker.address()).await,
        Some(way) => phase.by_bare_sql(way).await,
    }
}

impl Figures {
    fn add(&mut self, sold: Sold) {
        self.sales.push(rate(sold.took.len() as u64, sold.elapsed));
        self.p50.push(quantile(&sold.took, 0.5));
        self.p99.push(quantile(&sold.took, 0.99));
        self.thoughts.push(rate(sold.thought, sold.elapsed));
        for (why, count) in sold.failed {
            *self.failed.entry(why).or_default() += count;
        }
    }
}

fn show(wares: &[Ware], results: &[[Figures; 2]]) {
    let mut table = Table::new([
        "one hot item",
        "sales/s",
        "to the broker's",
        "p50 ms",
        "p99 ms",
        "with rivals: sales/s",
        "to the broker's",
        "p50 ms",
        "p99 ms",
        "rivals/s",
    ]);
    let ours: [f64; 2] = [median(&results[0][0].sales), median(&results[0][1].sales)];
    for ((name, _), [alone, beside]) in wares.iter().zip(results) {
        table.row([
            (*name).to_owned(),
            thousands(median(&alone.sales)),
            format!("{:.2}", median(&alone.sales) / ours[0]),
            format!("{:.1}", median(&alone.p50)),
            format!("{:.1}", median(&alone.p99)),
            thousands(median(&beside.sales)),
            format!("{:.2}", median(&beside.sales) / ours[1]),
            format!("{:.1}", median(&beside.p50)),
            format!("{:.1}", median(&beside.p99)),
            thousands(median(&beside.thoughts)),
        ]);
    }
    table.print();
    for ((name, _), figures) in wares.iter().zip(results) {
        for (when, figures) in ["alone", "with rivals"].iter().zip(figures) {
            for (why, count) in &figures.failed {
                println!("  {name}, {when}: {count} failed: {why}");
            }
        }
    }
}

/// Every sale that was answered is counted, and none that was not; a buyer whose answer was lost would have been told so.
async fn check(broker: &Broker, server: &Server, through_broker: usize, by_bare_sql: usize) -> Outcome<()> {
    let request = GetStockRequest { item: hot().item, location: hot().location, ..GetStockRequest::default() };
    let stocks = connect(broker.address()).await?.get_stock(request).await?.into_inner().stocks;
    let held: i64 = stocks.iter().map(|stock| stock.held).sum();
    let counted = server.connect(BARE).await?.held().await?;
    println!("  broker: {through_broker} sold, {held} held; bare SQL: {by_bare_sql} sold, {counted} counted");
    if usize::try_from(held)? != through_broker || usize::try_from(counted)? != by_bare_sql {
        return Err("sold is not what is counted".into());
    }
    Ok(())
}
