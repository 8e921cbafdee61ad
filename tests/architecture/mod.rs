//! Imports run downwards: cli -> app -> {grpc, http, upkeep} -> {dispatch, connections} -> store -> model. Configuration and
//! telemetry may be imported by all but the model. Engines are the store's own affair and know nothing of each other.

mod pages;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// What each part may import of ours. A part that is not in here may not exist, so that a new one is placed on purpose.
const MAY_IMPORT: [(&str, &[&str]); 15] = [
    ("model", &[]),
    ("config", &["model"]),
    ("telemetry", &["config", "model"]),
    ("store", &["model", "config", "telemetry"]),
    ("dispatch", &["store", "model", "config", "telemetry"]),
    ("connections", &["store", "model", "config", "telemetry"]),
    ("upkeep", &["dispatch", "connections", "store", "model", "config", "telemetry"]),
    ("grpc", &["dispatch", "connections", "store", "model", "config", "telemetry", "v1", "keda"]),
    ("http", &["dispatch", "connections", "store", "model", "config", "telemetry"]),
    ("prove", &[]),
    ("bench", &["v1"]),
    ("app", &["grpc", "http", "upkeep", "dispatch", "connections", "store", "model", "config", "telemetry", "v1"]),
    (
        "cli",
        &[
            "app",
            "bench",
            "prove",
            "grpc",
            "http",
            "upkeep",
            "dispatch",
            "connections",
            "store",
            "model",
            "config",
            "telemetry",
            "v1",
        ],
    ),
    ("main", &["cli"]),
    ("lib", &[]),
];

/// They look at the user's database by themselves, past the store.
const EXPERIMENTS: [&str; 2] = ["prove", "bench"];
const ENGINES: [&str; 3] = ["postgres", "mysql", "sqlite"];

struct Source {
    /// Below `src`.
    path: PathBuf,
    text: String,
}

impl Source {
    fn part(&self) -> String {
        let first = self.path.iter().next().expect("a file has a name").to_string_lossy().into_owned();
        first.trim_end_matches(".rs").to_owned()
    }

    /// The engine whose directory or file this is in.
    fn engine(&self) -> Option<&'static str> {
        let below = self.path.strip_prefix("store").ok()?;
        let first = below.iter().next()?.to_string_lossy().into_owned();
        ENGINES.into_iter().find(|engine| first.trim_end_matches(".rs") == *engine)
    }

    /// Modules from the crate's root that this file is: `store::sqlite::claim`.
    fn module(&self) -> Vec<String> {
        let mut module: Vec<String> =
            self.path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if module.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
            module.pop();
        }
        module
    }
}

fn files(below: &Path, extension: &str, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(below).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, extension, into);
        } else if path.extension().is_some_and(|found| found == extension) {
            into.push(path);
        }
    }
}

/// All sources but for tests, which may look anywhere: modules of their own and those at the ends of files.
fn all() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    files(&root, "rs", &mut paths);
    let source = |path: PathBuf| Source {
        text: fs::read_to_string(&path).expect("UTF-8"),
        path: path.strip_prefix(&root).expect("below it").to_owned(),
    };
    let mut all: Vec<Source> = paths.into_iter().map(source).collect();
    all.retain(|source| source.path.iter().all(|part| part != "tests" && part != "tests.rs"));
    assert!(all.len() > 20, "this test reads the sources");
    for source in &mut all {
        if let Some((before, _)) = source.text.split_once("#[cfg(test)]\nmod tests {") {
            source.text.truncate(before.len());
        }
    }
    all
}

/// Every path of ours that a text names, from the crate's root: those behind `crate::`, behind `super::`, and the members of
/// `use` lists, in `use` lines as well as in the middle of code.
fn paths(source: &Source) -> BTreeSet<Vec<String>> {
    let code: String =
        source.text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::").chain(code.match_indices("super::")) {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
            continue; // a part of a longer path or word
        }
        expand(&code[at..], &[], &mut found);
    }
    found.into_iter().filter_map(|path| from_root(&path, source)).collect()
}

/// Reads one path and what stands in its braces; returns what follows.
fn expand<'a>(mut text: &'a str, prefix: &[String], found: &mut BTreeSet<Vec<String>>) -> &'a str {
    let mut path = prefix.to_vec();
    loop {
        text = text.trim_start();
        if let Some(list) = text.strip_prefix('{') {
            let mut rest = list;
            loop {
                rest = rest.trim_start().trim_start_matches(',').trim_start();
                match rest.strip_prefix('}') {
                    Some(after) => return after,
                    None if rest.is_empty() => return rest,
                    None => rest = skip_alias(expand(rest, &path, found)),
                }
            }
        }
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        if end == 0 {
            found.insert(path);
            return text.strip_prefix('*').unwrap_or(text);
        }
        path.push(text[..end].to_owned());
        text = &text[end..];
        let Some(after) = text.strip_prefix("::") else {
            found.insert(path);
            return text;
        };
        text = after;
    }
}

fn skip_alias(text: &str) -> &str {
    let trimmed = text.trim_start();
    match trimmed.strip_prefix("as ") {
        Some(alias) => &alias[alias.find([',', '}']).unwrap_or(alias.len())..],
        None => text,
    }
}

/// A path behind `crate` or a row of `super`s, from the crate's root.
fn from_root(path: &[String], source: &Source) -> Option<Vec<String>> {
    if path.first()? == "crate" {
        return Some(path[1..].to_vec());
    }
    let mut module = source.module();
    let ups = path.iter().take_while(|part| *part == "super").count();
    module.truncate(module.len().checked_sub(ups)?);
    module.extend_from_slice(&path[ups..]);
    Some(module)
}

#[test]
fn imports_run_downwards() {
    let mut wrong = Vec::new();
    for source in all() {
        let part = source.part();
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| *name == part) else {
            panic!("{} belongs to no part of the house: place it in this test on purpose", source.path.display());
        };
        for path in paths(&source) {
            let Some(target) = path.first() else { continue };
            let is_part = MAY_IMPORT.iter().any(|(name, _)| name == target) || target == "v1";
            if is_part && *target != part && !allowed.contains(&target.as_str()) {
                wrong.push(format!("{} imports {}", source.path.display(), path.join("::")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn engines_do_not_import_each_other_and_only_the_store_and_the_composition_root_name_one() {
    let mut wrong = Vec::new();
    for source in all() {
        let (part, own) = (source.part(), source.engine());
        for path in paths(&source) {
            let engine = match path.as_slice() {
                [store, engine, ..] if store == "store" => ENGINES.into_iter().find(|name| name == engine),
                _ => None,
            };
            let Some(engine) = engine else { continue };
            let is_root = part == "app" || source.path == Path::new("store/mod.rs");
            if own != Some(engine) && !is_root {
                wrong.push(format!("{} names the engine {engine}: {}", source.path.display(), path.join("::")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_statement_asks_for_whatever_columns_there_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts = Vec::new();
    for below in ["src/store", "migrations"] {
        files(&root.join(below), "sql", &mut texts);
    }
    assert!(texts.len() > 40, "this test reads the statements");
    for path in texts {
        let text = fs::read_to_string(&path).expect("UTF-8").to_lowercase();
        let code: String = text.lines().map(|line| line.split("--").next().unwrap_or("")).collect::<Vec<_>>().join(" ");
        let words: Vec<&str> = code.split_whitespace().collect();
        let wild =
            words.windows(2).any(|pair| matches!(pair[0], "select" | "returning" | ",") && pair[1].starts_with('*'));
        assert!(!wild && !code.contains(".*"), "{} has a wildcard", path.display());
    }
}

#[test]
fn the_driver_is_named_in_engines_and_experiments_alone() {
    for source in all() {
        assert!(
            source.engine().is_some()
                || EXPERIMENTS.contains(&source.part().as_str())
                || !source.text.contains("sqlx::"),
            "{} names the driver, which is an engine's affair",
            source.path.display()
        );
    }
}

#[test]
fn statements_stand_in_files_of_their_own() {
    // The experiments' statements are made of the names and clauses that are tried, the measurement's of what it made.
    for source in all().into_iter().filter(|source| !EXPERIMENTS.contains(&source.part().as_str())) {
        let code = source.text.split("#[cfg(test)]").next().unwrap_or_default();
        for (n, line) in code.lines().enumerate() {
            let literal = line.split('"').nth(1).unwrap_or_default().to_lowercase();
            let is_one =
                ["select ", "insert into ", "delete from ", "with "].iter().any(|verb| literal.starts_with(verb))
                    || literal.starts_with("update ") && literal.contains(" set ");
            assert!(!is_one, "{}:{} holds a statement", source.path.display(), n + 1);
        }
    }
}

#[test]
fn what_the_documents_name_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut named = 0;
    for document in ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"] {
        let text = fs::read_to_string(root.join(document)).expect("a document");
        for path in text.split('`').skip(1).step_by(2) {
            let of_ours = ["src/", "tests/", "migrations/", "proto/", "docs/"].iter().any(|top| path.starts_with(top));
            if of_ours && !path.contains(['<', '*', ' ']) {
                assert!(root.join(path).exists(), "{document} names {path}, which is not there");
                named += 1;
            }
        }
    }
    assert!(named > 20, "only {named} places are named");
}

#[test]
fn files_are_short_enough_to_be_read_at_once() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for below in ["src", "tests", "benches"] {
        let mut found = Vec::new();
        files(&root.join(below), "rs", &mut found);
        assert!(!found.is_empty(), "nothing below {below}");
        for path in found {
            let lines = fs::read_to_string(&path).expect("UTF-8").lines().count();
            assert!(lines <= 400, "{} has {lines} lines: which two nouns are in it?", path.display());
        }
    }
}

#[test]
fn the_reader_of_imports_finds_what_is_there() {
    let source = Source {
        path: PathBuf::from("store/sqlite/claim.rs"),
        text: "use super::session::{A, b::{self, C as D}};\nuse crate::{\n    model::{Caller, JobId},\n    grpc,\n};\n\
               // crate::http in a comment\nfn f() -> crate::dispatch::X { super::super::error::E; xcrate::y }"
            .to_owned(),
    };
    let shown: Vec<_> = paths(&source).into_iter().map(|path| path.join("::")).collect();
    assert_eq!(
        shown,
        [
            "dispatch::X",
            "grpc",
            "model::Caller",
            "model::JobId",
            "store::error::E",
            "store::sqlite::session::A",
            "store::sqlite::session::b::C",
            "store::sqlite::session::b::self",
        ]
    );
}
