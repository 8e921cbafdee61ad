//! The same sale by bare SQL: one row counts what an item has left, and every sale changes that row. A sale writes what the
//! broker's does at least: the count, the reservation, its ledger entry.

use sqlx::{Connection as _, Executor as _, MySqlConnection, PgConnection, Row as _};

use super::stand::Outcome;

/// A statement in both dialects.
struct Sql {
    postgres: &'static str,
    mysql: &'static str,
}

const TABLES: Sql = Sql {
    postgres: "
        create table counter (
            item text, location text, on_hand bigint not null, held bigint not null, touched bigint not null,
            primary key (item, location)) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
        create table reservation (
            id bigint generated always as identity primary key, reference text not null unique, expires_at timestamptz not null);
        create table entry (
            id bigint generated always as identity primary key, reservation bigint not null, item text not null,
            location text not null, held bigint not null);
        insert into counter values ('hot', 'main', 1000000000, 0, 0);",
    mysql: "
        create table counter (
            item varbinary(200), location varbinary(200), on_hand bigint not null, held bigint not null,
            touched bigint not null, primary key (item, location));
        create table reservation (
            id bigint not null auto_increment primary key, reference varbinary(200) not null unique, expires_at bigint not null);
        create table entry (
            id bigint not null auto_increment primary key, reservation bigint not null, item varbinary(200) not null,
            location varbinary(200) not null, held bigint not null);
        insert into counter values ('hot', 'main', 1000000000, 0, 0);",
};
/// All of a sale in one round trip and its own commit: the shortest time that a row can be locked for.
const AT_ONCE: &str = "
    with taken as (
        update counter set held = held + 1 where item = 'hot' and location = 'main' and on_hand - held >= 1
        returning item, location),
    made as (
        insert into reservation (reference, expires_at) select $1, now() + interval '15 min' from taken returning id)
    insert into entry (reservation, item, location, held) select made.id, taken.item, taken.location, 1 from made, taken";
const TAKE: Sql = Sql {
    postgres: "update counter set held = held + 1 where item = 'hot' and location = 'main' and on_hand - held >= 1",
    mysql: "update counter set held = held + 1 where item = 'hot' and location = 'main' and on_hand - held >= 1",
};
const LOOK: Sql = Sql {
    postgres: "select on_hand - held from counter where item = 'hot' and location = 'main' for update",
    mysql: "select on_hand - held from counter where item = 'hot' and location = 'main' for update",
};
const NOTE: Sql = Sql {
    postgres: "
        with made as (insert into reservation (reference, expires_at) values ($1, now() + interval '15 min') returning id)
        insert into entry (reservation, item, location, held) select id, 'hot', 'main', 1 from made",
    mysql: "insert into reservation (reference, expires_at) values (?, unix_timestamp() * 1000000 + 900000000)",
};
const ENTRY: &str = "insert into entry (reservation, item, location, held) values (last_insert_id(), 'hot', 'main', 1)";
const TOUCH: Sql = Sql {
    postgres: "update counter set touched = touched + 1 where item = 'hot' and location = 'main'",
    mysql: "update counter set touched = touched + 1 where item = 'hot' and location = 'main'",
};
/// The row that only the broker's refills and slow path lock.
const TOUCH_STOCK: Sql = Sql {
    postgres: "select 1::bigint from leasehold.stock where item = 'hot' and location = 'main' for update",
    mysql: "select 1 from leasehold_stock where item = 'hot' and location = 'main' for update",
};
const HELD: Sql = Sql { postgres: "select held from counter", mysql: "select held from counter" };

/// How a sale takes a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// A conditional update, and all else, in one statement. PostgreSQL alone can.
    AtOnce,
    /// A conditional update first in a transaction of several statements.
    Conditional,
    /// A look under a lock, then an update.
    ForUpdate,
}

/// Which row a competing transaction locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    /// The one that counts, of bare SQL.
    Counter,
    /// The broker's.
    Stock,
}

/// A connection to either server.
#[derive(Debug)]
pub(super) enum Session {
    Postgres(PgConnection),
    MariaDb(MySqlConnection),
}

impl Session {
    /// Makes the tables and an item that never sells out.
    pub(super) async fn prepare(&mut self) -> Outcome<()> {
        self.raw(&TABLES).await
    }

    /// Sells one unit, or does nothing: whether it was sold. On a failure the transaction is rolled back.
    pub(super) async fn sell(&mut self, way: Way, reference: &str) -> Outcome<bool> {
        let sold = self.try_to_sell(way, reference).await;
        if sold.is_err() {
            self.raw(&Sql { postgres: "rollback", mysql: "rollback" }).await?;
        }
        sold
    }

    async fn try_to_sell(&mut self, way: Way, reference: &str) -> Outcome<bool> {
        if way == Way::AtOnce {
            return Ok(self.change(&Sql { postgres: AT_ONCE, mysql: AT_ONCE }, &[reference]).await? == 1);
        }
        self.begin().await?;
        let enough = way == Way::Conditional || self.look(&LOOK).await? >= 1;
        let sold = enough && self.change(&TAKE, &[]).await? == 1;
        if sold {
            self.change(&NOTE, &[reference]).await?;
            if let Self::MariaDb(_) = self {
                self.change(&Sql { postgres: ENTRY, mysql: ENTRY }, &[]).await?;
            }
        }
        self.commit().await?;
        Ok(sold)
    }

    /// A business transaction that locks the item's row and thinks before it commits.
    pub(super) async fn think(&mut self, row: Row, thought: std::time::Duration) -> Outcome<()> {
        self.begin().await?;
        match row {
            Row::Counter => self.change(&TOUCH, &[]).await.map(drop)?,
            Row::Stock => self.look(&TOUCH_STOCK).await.map(drop)?,
        }
        tokio::time::sleep(thought).await;
        self.commit().await
    }

    /// Units that were sold.
    pub(super) async fn held(&mut self) -> Outcome<i64> {
        self.look(&HELD).await
    }

    async fn begin(&mut self) -> Outcome<()> {
        self.raw(&Sql { postgres: "begin", mysql: "begin" }).await
    }

    async fn commit(&mut self) -> Outcome<()> {
        self.raw(&Sql { postgres: "commit", mysql: "commit" }).await
    }

    async fn raw(&mut self, sql: &Sql) -> Outcome<()> {
        match self {
            Self::Postgres(session) => session.execute(sqlx::raw_sql(sql.postgres)).await.map(drop)?,
            Self::MariaDb(session) => session.execute(sqlx::raw_sql(sql.mysql)).await.map(drop)?,
        }
        Ok(())
    }

    async fn change(&mut self, sql: &Sql, values: &[&str]) -> Outcome<u64> {
        Ok(match self {
            Self::Postgres(session) => {
                let query =
                    values.iter().fold(sqlx::query(sql.postgres), |query, value| query.bind((*value).to_owned()));
                query.execute(session).await?.rows_affected()
            }
            Self::MariaDb(session) => {
                let query = values.iter().fold(sqlx::query(sql.mysql), |query, value| query.bind((*value).to_owned()));
                query.execute(session).await?.rows_affected()
            }
        })
    }

    /// The one number that a statement answers.
    async fn look(&mut self, sql: &Sql) -> Outcome<i64> {
        Ok(match self {
            Self::Postgres(session) => sqlx::query(sql.postgres).fetch_one(session).await?.try_get(0)?,
            Self::MariaDb(session) => sqlx::query(sql.mysql).fetch_one(session).await?.try_get(0)?,
        })
    }

    /// Ends it in order.
    pub(super) async fn close(self) -> Outcome<()> {
        match self {
            Self::Postgres(session) => session.close().await?,
            Self::MariaDb(session) => session.close().await?,
        }
        Ok(())
    }
}
