//! Texts that are kept in files and compared.
//!
//! `LEASEHOLD_TEST_UPDATE_SNAPSHOTS=1 cargo test --test tests -- cli` writes them anew: look at what changed.

use std::{fs, path::Path};

use regex::Regex;

/// Compares a text with the file of this name, or writes the file.
pub(super) fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/snapshots").join(name);
    compare_with(&path, text);
}

/// Compares a text with a file anywhere in the project.
pub(super) fn compare_with(path: &Path, text: &str) {
    if std::env::var_os("LEASEHOLD_TEST_UPDATE_SNAPSHOTS").is_some() {
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory can be made");
        fs::write(path, text).expect("a file can be written");
        return;
    }
    let kept = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let first = kept.lines().zip(text.lines()).position(|(kept, now)| kept != now);
    let at = first.unwrap_or_else(|| kept.lines().count().min(text.lines().count()));
    assert!(
        kept == text,
        "{} differs from line {} on:\n  kept: {:?}\n  now:  {:?}\nif that is wanted, run the test with \
         LEASEHOLD_TEST_UPDATE_SNAPSHOTS=1\n{text}",
        path.display(),
        at + 1,
        kept.lines().nth(at),
        text.lines().nth(at),
    );
}

/// What differs from run to run, made equal: instants, lengths of time, rates, lease tokens, addresses, ids of streams, and the schema's
/// number. Gaps between columns become two blanks, as their widths depend on those.
pub(super) fn steady(text: &str) -> String {
    let rules = [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"AAAAAAAA[A-Za-z0-9_-]{40}", "LEASE_TOKEN"),
        (r"\b(in \d+[a-z]+( \d+[a-z]+)?|\d+[a-z]+( \d+[a-z]+)? ago|now)\b", "WHEN"),
        (r#"("[a-z_]*(_seconds|age)"):[0-9.e-]+"#, "$1:SECONDS"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
        (r"\b\d+\.\d+\.\d+\b", "VERSION"),
        (r"\b[0-9a-f]{8}-\d+\b", "STREAM_ID"),
        (r"\b\d+(\.\d+)? ?ms\b", "SPAN"),
        (r"\b\d+[smhd]( \d+[smh])?\b", "SPAN"),
        (r#"("(enqueued|leased|acked|retried|expired|dead)"):\d+\.\d+"#, "$1:N.N"),
        (r"\b\d+\.\d+\b", "N.N"),
        (r#"("(newest_)?schema_version"):\d+"#, "$1:N"),
        (r"(?m)^schema  +\d+$", "schema  N"),
        (r" +\n", "\n"),
        (r"([^ \n])   +", "$1  "),
    ];
    rules.iter().fold(text.to_owned(), |text, (rule, replacement)| {
        Regex::new(rule).expect("a rule").replace_all(&text, *replacement).into_owned()
    })
}
