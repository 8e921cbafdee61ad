//! The tables of the experiments.

use super::database::{Connection, Refused};

/// Names that nobody else has.
#[derive(Debug, Clone)]
pub(super) struct Tables {
    /// `id`, `done`.
    pub(super) job: String,
    /// One row for each time that a job's work took effect: `job_id`, `worker`.
    pub(super) effect: String,
    /// A pool that is empty: `item`, `unit`.
    pub(super) unit: String,
}

impl Tables {
    pub(super) async fn create(connection: &mut Connection) -> Result<Self, Refused> {
        let name = |what: &str| format!("leasehold_prove_{:08x}_{what}", rand::random::<u32>());
        let tables = Self { job: name("job"), effect: name("effect"), unit: name("unit") };
        let engine = match connection {
            Connection::Postgres(_) => "",
            Connection::Mysql(_) => " engine = InnoDB",
        };
        let Self { job, effect, unit } = &tables;
        for statement in [
            format!("create table {job} (id bigint primary key, done int not null){engine}"),
            format!("create index {job}_open on {job} (done, id)"),
            format!("create table {effect} (job_id bigint not null, worker int not null){engine}"),
            format!(
                "create table {unit} (item bigint not null, unit bigint not null, primary key (item, unit)){engine}"
            ),
        ] {
            if let Err(Refused(why)) = connection.must(&statement).await {
                tables.drop_all(connection).await?;
                return Err(Refused(format!("the experiment's tables could not be made: {why}")));
            }
        }
        Ok(tables)
    }

    /// Empties the tables and puts `jobs` jobs there that are not done.
    pub(super) async fn fill(&self, connection: &mut Connection, jobs: usize) -> Result<(), Refused> {
        let rows: Vec<String> = (1..=jobs).map(|id| format!("({id}, 0)")).collect();
        connection.must(&format!("delete from {}", self.effect)).await?;
        connection.must(&format!("delete from {}", self.job)).await?;
        connection.must(&format!("insert into {} (id, done) values {}", self.job, rows.join(", "))).await
    }

    pub(super) async fn drop_all(&self, connection: &mut Connection) -> Result<(), Refused> {
        for table in [&self.job, &self.effect, &self.unit] {
            connection.must(&format!("drop table if exists {table}")).await?;
        }
        Ok(())
    }
}
