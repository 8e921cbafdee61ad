//! No statement reads a whole table or a whole index, however few rows there are: on InnoDB it would lock all of them.

use std::{fs, path::Path};

use sqlx::{AssertSqlSafe, Executor as _, Row as _};

use crate::contract::{database::Database as _, mariadb};

/// How many rows each table has when the statements are explained.
const MOMENTS: [usize; 4] = [0, 1, FEW, 5_000];
const FEW: usize = 3;

const TABLES: [(&str, &str); 18] = [
    (
        "job (id, queue_id, priority, max_attempts, enqueued_at, available_at, ready_at, payload_bytes, ordering_key, \
         content_type, payload)",
        "seq, 1, 4, 5, 1, 1, seq, 1, concat('k', seq), '', 'x'",
    ),
    ("ready", "1, 5, seq, seq, 0, 0"),
    ("blocked", "1, concat('k', seq), seq, seq, 0, 0"),
    ("lease", "seq, unhex(lpad(hex(seq), 32, '0')), seq, 1, 1, 0, 0, 1"),
    ("ordering_key", "1, concat('k', seq), seq"),
    ("idempotency_key", "1, concat('k', seq), seq, repeat('x', 32), 0, seq"),
    (
        "dead_job (id, queue_id, priority, attempt, max_attempts, lease_number, enqueued_at, available_at, dead_at, \
         expires_at, payload_bytes, content_type, payload)",
        "seq, 1, 4, 1, 1, 1, 1, 1, seq, seq, 1, '', 'x'",
    ),
    ("arrival (stored_at, job_id, queue_id, ordering_key, queue_name)", "1, seq, 1, 'k', concat('n', seq)"),
    ("queue (name)", "concat('n', seq)"),
    ("stock (item, location, on_hand)", "concat('k', seq), 'k2', 9"),
    ("stock_unit", "concat('k', seq), 'k2', 2"),
    ("stock_delta", "concat('k', seq), 'k2', 2, seq, 1, 0, 1, 0"),
    ("stock_adjustment (reference, made_at, reason, caller, content)", "concat('k', seq), 1, '', 'x', repeat('x', 32)"),
    ("stock_ledger (item, location, kind, on_hand, held, entered_at)", "concat('k', seq), 'k2', 1, 1, 0, 1"),
    (
        "reservation (reference, created_at, expires_at, live_until, ended_at, caller, content)",
        "concat('k', seq), 1, seq, seq, seq, 'x', repeat('x', 32)",
    ),
    ("reservation_line", "seq, 1, concat('k', seq), 'k2', 1, seq"),
    (
        "reservation_job (reservation_id, place, queue_id, delay, priority, max_attempts, content_type, payload)",
        "seq, 1, 1, 0, 4, 9, '', 'x'",
    ),
    ("stock_switch", "concat('k', seq), '', 1"),
];

/// In rows of step, table and way on every server: MySQL 9 would draw a tree.
const EXPLAIN: &str = "explain /*!80011 format = traditional */";

/// Statements that read what the server knows of itself, and inserts of rows that are given.
const OTHERS: [&str; 15] = [
    "address",
    "adjust_name",
    "attend_replica",
    "check",
    "enqueue_jobs",
    "has_schema",
    "history",
    "keep_expiry_jobs",
    "lock_waits_mariadb",
    "lock_waits_mysql",
    "record_migration",
    "reserve_name",
    "settle_session",
    "tables",
    "transactions",
];

#[tokio::test]
async fn every_statement_goes_by_an_index() {
    let mut whole = Vec::new();
    let is_mysql = !mariadb::version().await.contains("MariaDB");
    for rows in MOMENTS {
        let db = mariadb::open().await;
        let mut session = mariadb::session(db.name()).await;
        for (table, values) in TABLES.iter().filter(|_| rows > 0) {
            db.execute(&format!("insert into leasehold_{table} select {values} from ({}) s", numbers(rows))).await;
            let name = table.split(' ').next().unwrap_or_default();
            session.fetch_all(AssertSqlSafe(format!("analyze table leasehold_{name}"))).await.expect("statistics");
        }
        let texts = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store/mysql/sql");
        let mut seen = 0;
        for entry in fs::read_dir(texts).expect("the statements") {
            let file = entry.expect("an entry").path();
            let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
            if name.starts_with("examine") || name == "sessions" || OTHERS.contains(&name.as_str()) {
                continue;
            }
            let text = with_values(&fs::read_to_string(&file).expect("a text"));
            // MySQL reads the whole index of a table of so few rows, and plans anew at each execution. Where nothing is locked
            // that costs nothing.
            let writes = ["insert", "update", "delete"].iter().any(|verb| text.trim_start().starts_with(verb));
            let is_read = !writes && !text.contains("for update");
            let counts_all = ["set_budget", "set_stock_switch"].contains(&name.as_str());
            // It locks no more than it takes, which of so few rows are all.
            let takes_first = name == "free_units";
            if is_mysql && (rows <= FEW && (is_read || takes_first) || counts_all) {
                continue;
            }
            let plan = session.fetch_all(sqlx::raw_sql(AssertSqlSafe(format!("{EXPLAIN} {text}")))).await;
            for step in plan.unwrap_or_else(|error| panic!("{name}: {error}: {text}")) {
                let table: Option<String> = step.get("table");
                let table = table.unwrap_or_default();
                let kind: Option<String> = step.get("type");
                // MySQL names the table that an INSERT is for, as if it were read.
                let is_target = step.get::<Option<String>, _>("select_type").as_deref() == Some("INSERT");
                let is_ours = !is_target && !table.is_empty() && table != "v" && !table.starts_with('<');
                let is_whole = matches!(kind.as_deref(), Some("ALL" | "index"));
                if is_ours && is_whole {
                    whole.push(format!("{name} with {rows} rows reads all of {table}"));
                }
            }
            seen += 1;
        }
        assert!(seen > 60, "this test reads the statements");
        drop(session);
        db.close().await;
    }
    assert!(whole.is_empty(), "{whole:#?}");
}

/// A query for the numbers from 1 to `count`, as `seq`.
fn numbers(count: usize) -> String {
    let digit = |name| format!("json_table('[0,1,2,3,4,5,6,7,8,9]', '$[*]' columns (d int path '$')) {name}");
    let digits = ["a", "b", "c", "e"].map(digit).join(", ");
    let seq = "1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d";
    format!("select {seq} as seq from {digits} where {seq} <= {count}")
}

/// What stands before a parameter that is a text or a byte string.
const NAMES: [&str; 10] = [
    "name > ",
    "name >= ",
    "name < ",
    "caller = ",
    "item = ",
    "item > ",
    "location = ",
    "location > ",
    "prefix = ",
    "reference = ",
];

/// The statement with values in place of its parameters: lists of one row, 2 and 'k2'.
fn with_values(text: &str) -> String {
    let code: Vec<&str> = text.lines().filter(|line| !line.starts_with("--")).collect();
    let code = code.join("\n");
    let mut parts = code.split("json_table(?");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        whole += &["json_table('", &row(part), "'", part].concat();
    }
    let name = |before: &str| NAMES.iter().any(|end| before.ends_with(end));
    let mut valued = String::new();
    for (n, part) in whole.split('?').enumerate() {
        if n > 0 {
            valued.push_str(if name(&valued) { "'k2'" } else { "2" });
        }
        valued.push_str(part);
    }
    valued
}

/// A list of one row for the columns that follow.
fn row(columns: &str) -> String {
    let columns = columns.split(")) ").next().unwrap_or_default();
    let columns = columns.split_once("columns (").map_or("", |(_, columns)| columns);
    let values: Vec<&str> = columns
        .split(" path '$")
        .zip(columns.split(" path '$").skip(1))
        .map(|(column, _)| {
            let column = column.rsplit(", ").next().unwrap_or_default();
            if column.contains("int") {
                "2"
            } else if column.contains("double") {
                "2.0"
            } else {
                "\"6b32\""
            }
        })
        .collect();
    if columns.contains("path '$[") { format!("[[{}]]", values.join(",")) } else { format!("[{}]", values.join(",")) }
}
