//! The migrations that this version knows.

/// One step of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    /// They rise by one.
    pub number: i32,
    /// The same on every engine.
    pub name: &'static str,
    /// What it runs, in one transaction.
    pub(super) text: &'static str,
}

/// All of them, lowest first. A database fits this version where its own list begins with this one.
pub const MIGRATIONS: &[Migration] = &[
    Migration { number: 1, name: "schema", text: include_str!("../../../migrations/postgres/0001_schema.sql") },
    Migration { number: 2, name: "functions", text: include_str!("../../../migrations/postgres/0002_functions.sql") },
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
