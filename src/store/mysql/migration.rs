//! The migrations that this version knows.

use crate::store::engine::Migration;

/// All of them, lowest first.
pub(super) const MIGRATIONS: &[Migration] = &[
    Migration { number: 1, name: "schema", sql: include_str!("../../../migrations/mysql/0001_schema.sql") },
    Migration { number: 2, name: "functions", sql: include_str!("../../../migrations/mysql/0002_functions.sql") },
    Migration { number: 3, name: "sql_api", sql: include_str!("../../../migrations/mysql/0003_sql_api.sql") },
    Migration {
        number: 4,
        name: "queue_administration",
        sql: include_str!("../../../migrations/mysql/0004_queue_administration.sql"),
    },
    Migration {
        number: 5,
        name: "job_administration",
        sql: include_str!("../../../migrations/mysql/0005_job_administration.sql"),
    },
    Migration {
        number: 6,
        name: "caller_budget",
        sql: include_str!("../../../migrations/mysql/0006_caller_budget.sql"),
    },
    Migration { number: 7, name: "reservations", sql: include_str!("../../../migrations/mysql/0007_reservations.sql") },
];

/// The statements of a migration, each to be sent by itself.
pub(super) fn statements(sql: &'static str) -> impl Iterator<Item = &'static str> {
    let is_code = |line: &str| !line.trim().is_empty() && !line.starts_with("--");
    sql.split("\n-- next\n").filter(move |part| part.lines().any(is_code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_by_one() {
        for (place, migration) in (1..).zip(MIGRATIONS) {
            assert_eq!(migration.number, place, "{}", migration.name);
        }
    }

    #[test]
    fn a_statement_can_run_again_where_a_migration_was_cut_off() {
        for statement in MIGRATIONS.iter().flat_map(|migration| statements(migration.sql)) {
            let code: Vec<&str> = statement.lines().filter(|line| !line.starts_with("--")).collect();
            let first = code.join(" ").trim_start().to_owned();
            let again =
                ["create table if not exists", "create or replace", "drop procedure if exists", "create procedure"];
            assert!(again.iter().any(|begin| first.starts_with(begin)), "{first:.60}");
        }
    }
}
