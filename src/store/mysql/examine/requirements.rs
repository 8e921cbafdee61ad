//! What settings must and should be.

use crate::store::{
    engine::examining::{Purpose, SettingFact},
    mysql::fitness::{Found, SMALLEST_PACKET},
};

/// Prepared statements of one replica with the usual lanes, and room for two more.
const STATEMENTS: u64 = 3 * 8 * 512;

/// Each setting as it is beside what it must be. Those of the binary log and of replicas only where there are such.
pub(super) fn settings(found: &Found, replicas: bool) -> Vec<SettingFact> {
    let logs = found.is_on("log_bin");
    let fact = |name, wanted, fits, purpose, change| SettingFact {
        name,
        value: found.get(name).to_owned(),
        wanted,
        fits,
        purpose,
        change,
    };
    let mut facts = vec![
        fact(
            "innodb_flush_log_at_trx_commit",
            "1",
            found.get("innodb_flush_log_at_trx_commit") == "1",
            Purpose::Durability,
            "set it to 1: with any other value a crash loses commits of the last second",
        ),
        fact(
            "innodb_doublewrite",
            "not OFF",
            !found.get("innodb_doublewrite").eq_ignore_ascii_case("OFF"),
            Purpose::Durability,
            "set it to ON, unless the file system writes whole pages",
        ),
        fact(
            "max_allowed_packet",
            "4194304 or more",
            found.number("max_allowed_packet") >= SMALLEST_PACKET.unsigned_abs(),
            Purpose::Text,
            "raise it, or large jobs are refused",
        ),
        fact(
            "max_prepared_stmt_count",
            "12288 or more",
            found.number("max_prepared_stmt_count") >= STATEMENTS,
            Purpose::Session,
            "raise it, or lanes of several replicas cannot prepare their statements",
        ),
        fact(
            "innodb_thread_concurrency",
            "0",
            found.number("innodb_thread_concurrency") == 0,
            Purpose::Session,
            "set it to 0: a bound on threads lets short statements wait for long ones",
        ),
        fact("autocommit", "ON", found.is_on("autocommit"), Purpose::Session, "connect past the proxy that changes it"),
        fact(
            "time_zone",
            "+00:00",
            found.get("time_zone") == "+00:00",
            Purpose::Session,
            "connect past the proxy that changes it",
        ),
    ];
    let isolation =
        if found.get("transaction_isolation").is_empty() { "tx_isolation" } else { "transaction_isolation" };
    facts.push(fact(
        isolation,
        "READ-COMMITTED",
        found.get(isolation) == "READ-COMMITTED",
        Purpose::Isolation,
        "connect past the proxy that changes it",
    ));
    if logs {
        facts.push(fact(
            "sync_binlog",
            "1",
            found.get("sync_binlog") == "1",
            Purpose::Durability,
            "set it to 1, or a power cut loses what replicas were to get",
        ));
        facts.push(fact(
            "binlog_format",
            "ROW or MIXED",
            !found.get("binlog_format").eq_ignore_ascii_case("STATEMENT"),
            Purpose::Isolation,
            "set it to ROW: READ COMMITTED cannot be logged by statements",
        ));
    }
    if replicas {
        let name = if found.get("rpl_semi_sync_source_enabled").is_empty() {
            "rpl_semi_sync_master_enabled"
        } else {
            "rpl_semi_sync_source_enabled"
        };
        facts.push(fact(
            name,
            "ON, with wait point AFTER_SYNC",
            found.is_on(name),
            Purpose::Failover,
            "switch semi-synchronous replication on, or a failover loses what was not sent yet",
        ));
    }
    facts
}
