//! Who buys, and who is in the way.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    time::{Duration, Instant},
};

use leasehold::v1::{
    AdjustStockRequest, ReservationLine, ReserveRequest, StockAdjustment, StockKey,
    reservation_service_client::ReservationServiceClient,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};
use tonic_types::StatusExt as _;

use super::{
    bare::{Row, Way},
    server::Server,
    stand::{Outcome, clients::from_caller},
};

pub(super) type Client = ReservationServiceClient<Channel>;

/// What came of a phase.
#[derive(Debug, Default)]
pub(super) struct Sold {
    /// Milliseconds that each sale took, as the buyer saw it.
    pub(super) took: Vec<f64>,
    /// Sales that failed, by why.
    pub(super) failed: BTreeMap<String, u64>,
    /// Transactions of those who were in the way.
    pub(super) thought: u64,
    pub(super) elapsed: Duration,
}

/// Sells for as long as it is told, one sale after the other for each buyer, while `rivals` are in the way.
pub(super) struct Phase<'a> {
    pub(super) server: &'a Server,
    pub(super) database: &'a str,
    pub(super) buyers: u64,
    pub(super) rivals: u64,
    pub(super) think: Duration,
    pub(super) length: Duration,
}

impl Phase<'_> {
    /// By bare SQL, each buyer on a connection of its own.
    pub(super) async fn by_bare_sql(&self, way: Way) -> Outcome<Sold> {
        let (mut buyers, stop) = (JoinSet::new(), CancellationToken::new());
        for number in 0..self.buyers {
            let (mut session, stop) = (self.server.connect(self.database).await?, stop.clone());
            buyers.spawn(async move {
                let mut sold = Sold::default();
                let (stamp, mut sale) = (rand::random::<u64>(), 0_u64);
                while !stop.is_cancelled() {
                    sale += 1;
                    let (began, reference) = (Instant::now(), format!("{stamp:x}-{number}-{sale}"));
                    match session.sell(way, &reference).await {
                        Ok(true) => sold.took.push(millis(began)),
                        Ok(false) => sold.fail("SOLD_OUT"),
                        Err(error) => sold.fail(&error.to_string()),
                    }
                }
                session.close().await?;
                Ok(sold)
            });
        }
        self.end(buyers, stop, Row::Counter).await
    }

    /// Through the broker, over eight connections.
    pub(super) async fn through_broker(&self, address: SocketAddr) -> Outcome<Sold> {
        let (mut buyers, stop, mut connections) = (JoinSet::new(), CancellationToken::new(), Vec::new());
        for _ in 0..self.buyers.min(8) {
            connections.push(connect(address).await?);
        }
        for (number, client) in (0..self.buyers).zip(connections.iter().cycle()) {
            let (mut client, stop) = (client.clone(), stop.clone());
            buyers.spawn(async move {
                let mut sold = Sold::default();
                let (stamp, mut sale) = (rand::random::<u64>(), 0_u64);
                while !stop.is_cancelled() {
                    sale += 1;
                    let began = Instant::now();
                    let request = from_caller("checkout", one_unit(format!("{stamp:x}-{number}-{sale}")))?;
                    match client.reserve(request).await {
                        Ok(_) => sold.took.push(millis(began)),
                        Err(status) => sold.fail(&reason(&status)),
                    }
                }
                Ok(sold)
            });
        }
        self.end(buyers, stop, Row::Stock).await
    }

    async fn end(&self, mut buyers: JoinSet<Outcome<Sold>>, stop: CancellationToken, row: Row) -> Outcome<Sold> {
        let (began, mut rivals) = (Instant::now(), JoinSet::new());
        for _ in 0..self.rivals {
            let (mut session, stop, think) = (self.server.connect(self.database).await?, stop.clone(), self.think);
            rivals.spawn(async move {
                let mut thought = 0;
                while !stop.is_cancelled() {
                    session.think(row, think).await?;
                    thought += 1;
                }
                session.close().await?;
                Ok::<u64, Box<dyn std::error::Error + Send + Sync>>(thought)
            });
        }
        tokio::time::sleep(self.length).await;
        stop.cancel();
        let mut all = Sold { elapsed: began.elapsed(), ..Sold::default() };
        while let Some(one) = buyers.join_next().await {
            all.add(one??);
        }
        while let Some(one) = rivals.join_next().await {
            all.thought += one??;
        }
        Ok(all)
    }
}

impl Sold {
    fn fail(&mut self, why: &str) {
        *self.failed.entry(why.to_owned()).or_default() += 1;
    }

    fn add(&mut self, other: Self) {
        self.took.extend(other.took);
        for (why, count) in other.failed {
            *self.failed.entry(why).or_default() += count;
        }
    }
}

/// A client with a connection of its own.
pub(super) async fn connect(address: SocketAddr) -> Outcome<Client> {
    let channel = Endpoint::from_shared(format!("http://{address}"))?.tcp_nodelay(true).connect().await?;
    Ok(ReservationServiceClient::new(channel))
}

/// The item that everybody wants.
pub(super) fn hot() -> StockKey {
    StockKey { item: "hot".to_owned(), location: "main".to_owned() }
}

/// Puts in so many units that they never run out.
pub(super) async fn stock_up(client: &mut Client) -> Outcome<()> {
    let adjustments = vec![StockAdjustment { key: Some(hot()), delta: 1_000_000_000 }];
    let request = AdjustStockRequest { adjustments, reference: "delivery".to_owned(), ..AdjustStockRequest::default() };
    client.adjust_stock(from_caller("receiving", request)?).await?;
    Ok(())
}

fn one_unit(reference: String) -> ReserveRequest {
    let lines = vec![ReservationLine { key: Some(hot()), quantity: 1 }];
    ReserveRequest { reference, lines, ..ReserveRequest::default() }
}

fn reason(status: &tonic::Status) -> String {
    let details = status.get_error_details();
    details.error_info().map_or_else(|| status.to_string(), |info| info.reason.clone())
}

fn millis(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e3
}
