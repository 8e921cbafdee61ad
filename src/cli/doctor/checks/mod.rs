//! What the facts mean, and what to do about them. Pure: facts in, findings out.

mod connections;
mod role;
mod schema;
mod server;
mod settings;
mod upkeep;

use std::time::Duration;

use super::finding::Finding;
use crate::store::engine::examining::{Facts, Unseen};

/// What the facts are held against.
#[derive(Debug, Clone)]
pub(super) struct Expectations {
    /// Replicas that there are or will be.
    pub(super) replicas: u64,
    /// Connections of each.
    pub(super) connections: u64,
    /// A snapshot older than this is old.
    pub(super) old_snapshot: Duration,
    /// The broker applies migrations itself when it starts.
    pub(super) migrates: bool,
    /// The operator has allowed settings that can lose acknowledged commits.
    pub(super) allow_lossy: bool,
}

/// All findings, in the order in which an operator wants to read them.
pub(super) fn judge(facts: &Facts, expected: &Expectations) -> Vec<Finding> {
    let mut findings = server::judge(facts);
    findings.extend(settings::judge(&facts.settings, expected));
    findings.extend(role::judge(&facts.role, expected));
    findings.extend(connections::judge(&facts.connections, expected));
    findings.extend(schema::judge(facts, expected));
    findings.extend(upkeep::judge(facts, expected));
    findings
}

/// A check that could not be made is not passed.
fn unseen(check: &'static str, Unseen(why): &Unseen) -> Finding {
    Finding::warn(check, format!("cannot be seen: {why}"), "run doctor as a role that may see it")
}

/// A length of time as people say it: `350 ms`, `12 s`, `5 min`, `3 h`, `2 days`.
fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_said_in_the_largest_fitting_unit() {
        for (seconds, said) in [(0, "0 ms"), (59, "59 s"), (300, "5 min"), (7_200, "2 h"), (400_000, "4 days")] {
            assert_eq!(span(Duration::from_secs(seconds)), said);
        }
        assert_eq!(span(Duration::from_millis(350)), "350 ms");
    }
}

/// A database without a fault, for tests.
#[cfg(test)]
pub(super) mod healthy {
    use super::*;
    use crate::store::engine::{AppliedMigration, examining::*};

    pub(crate) fn facts() -> Facts {
        let migrations: Vec<AppliedMigration> = [(1, "schema"), (2, "functions")]
            .map(|(number, name)| AppliedMigration { number, name: name.into() })
            .into();
        Facts {
            server: ServerFacts {
                product: "PostgreSQL",
                version: "15.8".into(),
                oldest: "14",
                new_enough: true,
                place: "db:5432, database app, schema leasehold".into(),
                read_only: None,
            },
            settings: Ok(vec![setting("fsync", Purpose::Durability)]),
            pooler: None,
            role: Ok(Some(RoleFacts {
                name: "broker".into(),
                powers: Vec::new(),
                shapes_tables: false,
                lacks: Vec::new(),
            })),
            connections: Ok(Some(ConnectionFacts {
                allowed: 100,
                reserved: 3,
                in_use: 10,
                ours: 0,
                role: None,
                database: None,
            })),
            clock: ClockFacts { ahead: 0, give_or_take: Duration::from_millis(1) },
            snapshots: Ok(SnapshotFacts::default()),
            known: migrations.clone(),
            applied: Ok(migrations),
            tables: Ok(TableFacts {
                missing: Vec::new(),
                present: vec![TableFact {
                    name: "job".into(),
                    vacuum_off: false,
                    strayed: Vec::new(),
                    live: 10,
                    dead: 10,
                }],
            }),
            indexes: Ok(IndexFacts { in_order: 12, ..IndexFacts::default() }),
        }
    }

    pub(crate) fn setting(name: &'static str, purpose: Purpose) -> SettingFact {
        SettingFact { name, value: "on".into(), wanted: "on", fits: true, purpose, change: "switch it on" }
    }

    pub(crate) fn expected() -> Expectations {
        Expectations {
            replicas: 2,
            connections: 10,
            old_snapshot: Duration::from_mins(5),
            migrates: false,
            allow_lossy: false,
        }
    }

    /// The findings that are not ok, as `level check`.
    pub(crate) fn troubles(facts: &Facts, expected: &Expectations) -> Vec<String> {
        let troubled = judge(facts, expected).into_iter().filter(|finding| finding.remedy.is_some());
        troubled.map(|finding| format!("{} {}", finding.level.as_str(), finding.check)).collect()
    }

    #[test]
    fn a_healthy_database_has_no_trouble() {
        assert!(troubles(&facts(), &expected()).is_empty(), "{:?}", judge(&facts(), &expected()));
    }

    #[test]
    fn what_cannot_be_seen_is_said_line_by_line() {
        let unseen = || Unseen("not ours to see".into());
        let blind = Facts {
            settings: Err(unseen()),
            role: Err(unseen()),
            connections: Err(unseen()),
            snapshots: Err(unseen()),
            applied: Err(unseen()),
            tables: Err(unseen()),
            indexes: Err(unseen()),
            ..facts()
        };
        let lines = ["durability", "privileges", "connections", "schema", "indexes", "vacuum", "snapshots"];
        assert_eq!(troubles(&blind, &expected()), lines.map(|line| format!("warn {line}")));
    }
}
