//! The options of the configuration as flags.

use clap::{Arg, ArgMatches, Command, builder::PathBufValueParser};

use super::{Exit, exit};
use crate::config::{Config, Declared, Sources};

/// Adds `--config` and a flag for every option. `-h` shows those outside of any section, `--help` all.
pub(super) fn add_to(command: Command) -> Command {
    let file = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(PathBufValueParser::new())
        .help("TOML file with options [env: LEASEHOLD_CONFIG]");
    Config::sections().into_iter().fold(command.arg(file), |command, section| {
        let heading = if section.name.is_empty() { "Broker".to_owned() } else { format!("[{}]", section.name) };
        command.next_help_heading(heading).args(section.options.iter().map(flag))
    })
}

fn flag(option: &Declared) -> Arg {
    let description = &option.description;
    let default = match description.default.as_str() {
        "" => String::new(),
        default => format!(" [default: {default}]"),
    };
    let help = format!("{}{default}", option.doc).replace('`', "");
    let more = format!("{help}\n[{}] [env: {}]", description.range.replace('`', ""), option.variable());
    let arg = Arg::new(option.key.clone())
        .long(option.flag())
        .value_name(description.placeholder)
        .help(help)
        .long_help(more)
        .allow_hyphen_values(true)
        .hide_short_help(!option.section.is_empty());
    if description.switch { arg.num_args(0..=1).require_equals(true).default_missing_value("true") } else { arg }
}

/// The configuration, or the end of the program after every fault was told.
pub(super) fn load(matches: &ArgMatches) -> Result<Config, Exit> {
    Config::load(&sources(matches)).map(|(config, _)| config).map_err(|faults| {
        exit::note(&format_args!("leasehold: {faults}"));
        Exit::BadConfiguration
    })
}

/// What the file, the environment and the flags say.
pub(super) fn sources(matches: &ArgMatches) -> Sources {
    let flags = Config::sections().into_iter().flat_map(|section| section.options).filter_map(|option| {
        let value = matches.get_one::<String>(&option.key)?;
        Some((option.key, value.clone()))
    });
    let environment =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok())));
    Sources {
        file: matches.get_one::<std::path::PathBuf>("config").cloned(),
        environment: environment.collect(),
        flags: flags.collect(),
    }
}
