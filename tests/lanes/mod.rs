//! What the store does beyond its engines: lanes, deadlines, merging, outages, attribution. On real databases.

macro_rules! on_both_engines {
    ($($case:ident),+ $(,)?) => {
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(crate::lanes::stage::Stage::postgres().await).await;
            })+
        }
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(crate::lanes::stage::Stage::sqlite().await).await;
            })+
        }
    };
}

mod arrivals;
mod attribution;
mod bounds;
mod budgets;
mod busy;
mod callers;
mod cancellation;
mod claims;
mod connections;
mod deadlines;
mod ledger;
mod merging;
mod outage;
pub(crate) mod proxy;
pub(crate) mod schema;
pub(crate) mod server;
pub(crate) mod stage;
mod stock;
