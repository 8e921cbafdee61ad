//! Settings that something depends on: what each must be, and what to change where it is not.

use std::collections::HashMap;

use crate::store::engine::examining::{Purpose, SettingFact};

/// Settings that are read.
pub(super) const NAMES: [&str; 12] = [
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "synchronous_standby_names",
    "default_transaction_isolation",
    "plan_cache_mode",
    "enable_seqscan",
    "enable_hashjoin",
    "enable_mergejoin",
    "autovacuum",
    "track_counts",
    "server_encoding",
];

/// What must hold of a setting.
struct Requirement {
    name: &'static str,
    wanted: &'static str,
    fits: fn(&str) -> bool,
    purpose: Purpose,
    change: &'static str,
}

fn on(value: &str) -> bool {
    value == "on"
}

fn off(value: &str) -> bool {
    value == "off"
}

const SESSION: &str = "connect past the pooler that drops what sessions ask for, or set it for the role (docs/roles.sql has \
                       the statements)";

const REQUIREMENTS: [Requirement; 11] = [
    Requirement {
        name: "fsync",
        wanted: "on",
        fits: on,
        purpose: Purpose::Durability,
        change: "set fsync = on in postgresql.conf and reload",
    },
    Requirement {
        name: "full_page_writes",
        wanted: "on",
        fits: on,
        purpose: Purpose::Durability,
        change: "set full_page_writes = on in postgresql.conf and reload",
    },
    Requirement {
        name: "synchronous_commit",
        wanted: "on",
        fits: |value| value != "off",
        purpose: Purpose::Durability,
        change: "set synchronous_commit = on: for the server, or by alter role … set synchronous_commit = on for the broker's \
                 role alone",
    },
    Requirement {
        name: "default_transaction_isolation",
        wanted: "read committed",
        fits: |value| value == "read committed",
        purpose: Purpose::Isolation,
        change: SESSION,
    },
    Requirement {
        name: "plan_cache_mode",
        wanted: "force_generic_plan",
        fits: |value| value == "force_generic_plan",
        purpose: Purpose::Session,
        change: SESSION,
    },
    Requirement { name: "enable_seqscan", wanted: "off", fits: off, purpose: Purpose::Session, change: SESSION },
    Requirement { name: "enable_hashjoin", wanted: "off", fits: off, purpose: Purpose::Session, change: SESSION },
    Requirement { name: "enable_mergejoin", wanted: "off", fits: off, purpose: Purpose::Session, change: SESSION },
    Requirement {
        name: "autovacuum",
        wanted: "on",
        fits: on,
        purpose: Purpose::Maintenance,
        change: "set autovacuum = on in postgresql.conf and reload",
    },
    Requirement {
        name: "track_counts",
        wanted: "on",
        fits: on,
        purpose: Purpose::Maintenance,
        change: "set track_counts = on in postgresql.conf and reload: autovacuum does nothing without it",
    },
    Requirement {
        name: "server_encoding",
        wanted: "UTF8",
        fits: |value| value == "UTF8",
        purpose: Purpose::Text,
        change: "use a database that was created with encoding UTF8: headers and error texts are Unicode",
    },
];

/// The settings as facts. `standbys` is whether there are any, as far as can be seen.
pub(super) fn settings(values: &HashMap<String, String>, standbys: bool) -> Vec<SettingFact> {
    let fact = |required: &Requirement| {
        let value = values.get(required.name)?.clone();
        let Requirement { name, wanted, purpose, change, .. } = *required;
        Some(SettingFact { name, fits: (required.fits)(&value), value, wanted, purpose, change })
    };
    let mut facts: Vec<SettingFact> = REQUIREMENTS.iter().filter_map(fact).collect();
    facts.extend(failover(values, standbys));
    facts
}

/// A failover loses nothing where commits wait for a standby. Without a standby there is no failover.
fn failover(values: &HashMap<String, String>, standbys: bool) -> Option<SettingFact> {
    let named = values.get("synchronous_standby_names")?;
    let commit = values.get("synchronous_commit")?;
    let waits = !matches!(commit.as_str(), "off" | "local");
    let value = match (named.is_empty(), waits) {
        (true, _) if !standbys => "'' (there is no standby to fail over to)".to_owned(),
        (true, _) => "''".to_owned(),
        (false, true) => named.clone(),
        (false, false) => format!("{named}, but synchronous_commit = {commit} does not wait for it"),
    };
    Some(SettingFact {
        name: "synchronous_standby_names",
        value,
        wanted: "a standby that commits wait for",
        fits: if named.is_empty() { !standbys } else { waits },
        purpose: Purpose::Failover,
        change: "name a synchronous standby and fail over to that one only, or read docs/restore.md before you fail over",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(changed: &[(&str, &str)], standbys: bool) -> Vec<SettingFact> {
        let good = [
            ("fsync", "on"),
            ("full_page_writes", "on"),
            ("synchronous_commit", "on"),
            ("synchronous_standby_names", ""),
            ("default_transaction_isolation", "read committed"),
            ("plan_cache_mode", "force_generic_plan"),
            ("enable_seqscan", "off"),
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
            ("autovacuum", "on"),
            ("track_counts", "on"),
            ("server_encoding", "UTF8"),
        ];
        let values = good.iter().chain(changed).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        settings(&values.collect(), standbys)
    }

    fn misfits(changed: &[(&str, &str)], standbys: bool) -> Vec<&'static str> {
        facts(changed, standbys).into_iter().filter(|fact| !fact.fits).map(|fact| fact.name).collect()
    }

    #[test]
    fn every_requirement_is_read_from_the_server() {
        assert!(REQUIREMENTS.iter().all(|required| NAMES.contains(&required.name)));
        assert_eq!(facts(&[], false).len(), REQUIREMENTS.len() + 1);
    }

    #[test]
    fn good_settings_fit_and_each_bad_one_is_found() {
        assert!(misfits(&[], false).is_empty());
        for (name, bad) in [
            ("fsync", "off"),
            ("full_page_writes", "off"),
            ("synchronous_commit", "off"),
            ("default_transaction_isolation", "repeatable read"),
            ("plan_cache_mode", "auto"),
            ("enable_seqscan", "on"),
            ("enable_hashjoin", "on"),
            ("enable_mergejoin", "on"),
            ("autovacuum", "off"),
            ("track_counts", "off"),
            ("server_encoding", "SQL_ASCII"),
        ] {
            assert_eq!(misfits(&[(name, bad)], false), [name]);
        }
        assert!(misfits(&[("synchronous_commit", "local")], false).is_empty());
    }

    #[test]
    fn a_standby_that_no_commit_waits_for_is_found() {
        assert_eq!(misfits(&[], true), ["synchronous_standby_names"]);
        assert!(misfits(&[("synchronous_standby_names", "b")], true).is_empty());
        let local = [("synchronous_standby_names", "b"), ("synchronous_commit", "local")];
        assert_eq!(misfits(&local, true), ["synchronous_standby_names"]);
    }
}
