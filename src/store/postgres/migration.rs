//! The migrations that this version knows.

use crate::store::engine::Migration;

/// All of them, lowest first.
pub(super) const MIGRATIONS: &[Migration] = &[
    Migration { number: 1, name: "schema", sql: include_str!("../../../migrations/postgres/0001_schema.sql") },
    Migration {
        number: 2,
        name: "functions",
        sql: concat!(
            include_str!("../../../migrations/postgres/0002_functions/keys.sql"),
            include_str!("../../../migrations/postgres/0002_functions/enqueue.sql"),
            include_str!("../../../migrations/postgres/0002_functions/settle.sql"),
            include_str!("../../../migrations/postgres/0002_functions/upkeep.sql"),
        ),
    },
    Migration { number: 3, name: "sql_api", sql: include_str!("../../../migrations/postgres/0003_sql_api.sql") },
    Migration {
        number: 4,
        name: "queue_administration",
        sql: concat!(
            include_str!("../../../migrations/postgres/0004_queue_administration/tables.sql"),
            include_str!("../../../migrations/postgres/0004_queue_administration/acks.sql"),
            include_str!("../../../migrations/postgres/0004_queue_administration/counting.sql"),
            include_str!("../../../migrations/postgres/0004_queue_administration/purging.sql"),
            include_str!("../../../migrations/postgres/0004_queue_administration/expiry.sql"),
            include_str!("../../../migrations/postgres/0004_queue_administration/sql_api.sql"),
        ),
    },
    Migration {
        number: 5,
        name: "job_administration",
        sql: concat!(
            include_str!("../../../migrations/postgres/0005_job_administration/tables.sql"),
            include_str!("../../../migrations/postgres/0005_job_administration/enqueue.sql"),
            include_str!("../../../migrations/postgres/0005_job_administration/leases.sql"),
            include_str!("../../../migrations/postgres/0005_job_administration/steering.sql"),
            include_str!("../../../migrations/postgres/0005_job_administration/presence.sql"),
        ),
    },
    Migration {
        number: 6,
        name: "caller_budget",
        sql: include_str!("../../../migrations/postgres/0006_caller_budget.sql"),
    },
    Migration {
        number: 7,
        name: "reservations",
        sql: concat!(
            include_str!("../../../migrations/postgres/0007_reservations/tables.sql"),
            include_str!("../../../migrations/postgres/0007_reservations/books.sql"),
            include_str!("../../../migrations/postgres/0007_reservations/reserving.sql"),
            include_str!("../../../migrations/postgres/0007_reservations/ending.sql"),
            include_str!("../../../migrations/postgres/0007_reservations/stocking.sql"),
        ),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_by_one() {
        for (place, migration) in (1..).zip(MIGRATIONS) {
            assert_eq!(migration.number, place, "{}", migration.name);
        }
    }
}
