//! `leasehold config`: what may be configured, what is configured.

use std::{collections::BTreeMap, fmt::Write as _};

use clap::{ArgMatches, Command};

use super::{Exit, exit, options, print};
use crate::{
    app::database::examiner,
    config::{Chosen, Config, reference},
};

/// The command.
pub(super) fn command() -> Command {
    Command::new("config")
        .about("Look at the configuration")
        .subcommand_required(true)
        .subcommand(Command::new("docs").about("Print docs/configuration.md"))
        .subcommand(options::add_to(
            Command::new("check").about("Say whether the configuration is fine, or all that is wrong with it"),
        ))
        .subcommand(options::add_to(
            Command::new("print")
                .visible_alias("show")
                .about("Print every option, its value and who decided it; no secrets"),
        ))
}

/// Runs it.
pub(super) fn run(matches: &ArgMatches) -> Exit {
    match matches.subcommand() {
        Some(("docs", _)) => print(&reference()),
        Some((command, matches)) => match Config::load(&options::sources(matches)) {
            Ok((config, chosen)) if command == "check" => match examiner(&config) {
                // what its driver does not take would end the broker at its start
                Err(error) => {
                    exit::note(&format_args!("leasehold: database_url: {error}"));
                    Exit::BadConfiguration
                }
                Ok(_) => print(&fine(&chosen)),
            },
            Ok((_, chosen)) => print(&table(&chosen)),
            Err(faults) => {
                exit::note(&format_args!("leasehold: {faults}"));
                Exit::BadConfiguration
            }
        },
        None => Exit::BadConfiguration,
    }
}

/// That nothing is wrong, and how much was said.
fn fine(chosen: &BTreeMap<String, Chosen>) -> String {
    let options: usize = Config::sections().iter().map(|section| section.options.len()).sum();
    format!(
        "the configuration is fine: {} of {options} options are set, the others have their defaults\n",
        chosen.len()
    )
}

/// One line an option: its key, its value, who decided it. Secrets are not shown.
fn table(chosen: &BTreeMap<String, Chosen>) -> String {
    let mut table = String::new();
    for option in Config::sections().into_iter().flat_map(|section| section.options) {
        let (value, origin) = match chosen.get(&option.key) {
            Some(Chosen { origin, text }) => (text.as_deref().unwrap_or("(not shown)"), origin.place(&option.key)),
            None => (option.description.default.as_str(), "default".to_owned()),
        };
        writeln!(table, "{:<30} {:<24} {origin}", option.key, if value.is_empty() { "-" } else { value })
            .expect("writing to a String cannot fail");
    }
    for (key, Chosen { origin, text }) in chosen.iter().filter(|(key, _)| is_of_one_caller(key)) {
        writeln!(table, "{key:<30} {:<24} {}", text.as_deref().unwrap_or("(not shown)"), origin.place(key))
            .expect("writing to a String cannot fail");
    }
    table
}

/// An option that is there once for each caller.
fn is_of_one_caller(key: &str) -> bool {
    Config::sections().iter().flat_map(|section| &section.options).all(|option| option.key != *key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    #[test]
    fn the_table_says_who_decided_and_hides_secrets() {
        let sources = Sources {
            environment: vec![("LEASEHOLD_DATABASE_URL".into(), Some("postgres://u:hunter2@db/app".into()))],
            flags: vec![("lanes.count".into(), "5".into())],
            ..Sources::default()
        };
        let (_, chosen) = Config::load(&sources).expect("all fine");
        let table = table(&chosen);
        assert!(!table.contains("hunter2"), "{table}");
        let line = |key: &str| table.lines().find(|line| line.starts_with(key)).unwrap_or_default().to_owned();
        assert!(line("database_url").ends_with("LEASEHOLD_DATABASE_URL"), "{table}");
        assert!(line("lanes.count").contains(" 5 ") && line("lanes.count").ends_with("--lanes-count"), "{table}");
        assert!(line("lanes.idle_use").contains(" 30s ") && line("lanes.idle_use").ends_with("default"), "{table}");
    }
}
