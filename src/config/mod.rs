//! The configuration: defaults, over them a TOML file, over it `LEASEHOLD_*`, over those the flags.
//!
//! Every option is declared once, in [`sections`]; parsing, validation, `--help` and docs/configuration.md come from there.
//! Unknown names and values out of range are faults, never guessed at or clamped, and all faults are reported at once,
//! each with the place where it was said, before a socket is opened.
//!
//! To add an option: one line in its section, a rule in `rules.rs` where it depends on another, and
//! `leasehold config docs > docs/configuration.md`. Sections that are there once for each caller are in `sections/budget.rs`.

mod declared;
mod fault;
pub mod kind;
mod layers;
mod reference;
mod rules;
pub mod sections;
mod url_file;
mod values;

use std::{collections::BTreeMap, path::PathBuf};

pub use self::{
    declared::Declared,
    fault::{Fault, Faults, Origin},
    kind::Database,
    layers::{Chosen, Variable},
    reference::reference,
};
use self::{
    declared::Section,
    layers::Layers,
    sections::{
        Broker, Callers, Lanes, Queues, RequestLimits, SamplerSection, ScalerSection, ServerSection, StockSection,
        Streams, TelemetrySection, UpkeepSection, budget,
    },
};
use crate::model::{Budget, Caller};

/// All options of the broker.
#[derive(Debug, Clone)]
pub struct Config {
    /// The broker as a whole.
    pub broker: Broker,
    /// Business processes.
    pub callers: Callers,
    /// Budgets of single callers.
    pub budgets: Vec<(Caller, Budget)>,
    /// Lanes and the line before them.
    pub lanes: Lanes,
    /// Lease streams and claims.
    pub streams: Streams,
    /// The gRPC server.
    pub server: ServerSection,
    /// What one request may hold.
    pub limits: RequestLimits,
    /// Settings of queues that come into being.
    pub queues: Queues,
    /// Stock and reservations.
    pub stock: StockSection,
    /// The broker's own work.
    pub upkeep: UpkeepSection,
    /// The look at the database's connections.
    pub sampler: SamplerSection,
    /// What KEDA is told of queues.
    pub scaler: ScalerSection,
    /// What the broker tells about itself.
    pub telemetry: TelemetrySection,
}

/// What a run of the program was told, besides defaults.
#[derive(Default)]
pub struct Sources {
    /// The file named by `--config`.
    pub file: Option<PathBuf>,
    /// The environment.
    pub environment: Vec<Variable>,
    /// Flags, by key.
    pub flags: Vec<(String, String)>,
}

/// A section for people.
pub struct SectionAbout {
    /// Name in the file; empty for the options outside of any section.
    pub name: &'static str,
    /// What its options are about.
    pub about: &'static str,
    /// Its options.
    pub options: Vec<Declared>,
}

impl Config {
    /// Every option there is, by section.
    pub fn sections() -> Vec<SectionAbout> {
        fn about<S: Section>() -> SectionAbout {
            SectionAbout { name: S::NAME, about: S::ABOUT.trim(), options: S::declared() }
        }
        vec![
            about::<Broker>(),
            about::<Callers>(),
            about::<Lanes>(),
            about::<Streams>(),
            about::<ServerSection>(),
            about::<RequestLimits>(),
            about::<Queues>(),
            about::<StockSection>(),
            about::<UpkeepSection>(),
            about::<SamplerSection>(),
            about::<ScalerSection>(),
            about::<TelemetrySection>(),
        ]
    }

    /// Sections of which there may be several, each with a name of its own in the place of the last part.
    pub fn named_sections() -> Vec<SectionAbout> {
        vec![SectionAbout { name: budget::NAME, about: budget::ABOUT, options: budget::declared() }]
    }

    /// The configuration that `sources` add up to, with what was decided for each option that anybody spoke about; or everything
    /// that is wrong with them.
    pub fn load(sources: &Sources) -> Result<(Self, BTreeMap<String, Chosen>), Faults> {
        let declared: Vec<_> = Self::sections().into_iter().flat_map(|section| section.options).collect();
        let mut layers = Layers::new(&declared);
        let (place, file) = match &sources.file {
            Some(path) => ("--config", Some(path.clone())),
            None => ("LEASEHOLD_CONFIG", file_of_environment(&sources.environment)),
        };
        if let Some(path) = file {
            match std::fs::read_to_string(&path) {
                Ok(text) => layers.add_file(&path, &text),
                Err(error) => layers.fault(place.to_owned(), format!("{} cannot be read: {error}", path.display())),
            }
        }
        layers.add_environment(&sources.environment);
        layers.add_flags(&sources.flags);
        let mut broker = Broker::read(&mut layers);
        if let Some(database) = broker.database_url_file.as_deref().and_then(|path| url_file::read(path, &mut layers)) {
            broker.database_url = database;
        }
        let config = Self {
            broker,
            callers: Callers::read(&mut layers),
            budgets: budget::read(&mut layers),
            lanes: Lanes::read(&mut layers),
            streams: Streams::read(&mut layers),
            server: ServerSection::read(&mut layers),
            limits: RequestLimits::read(&mut layers),
            queues: Queues::read(&mut layers),
            stock: StockSection::read(&mut layers),
            upkeep: UpkeepSection::read(&mut layers),
            sampler: SamplerSection::read(&mut layers),
            scaler: ScalerSection::read(&mut layers),
            telemetry: TelemetrySection::read(&mut layers),
        };
        rules::check(&config, &mut layers);
        let (chosen, faults) = layers.finish();
        if faults.is_empty() { Ok((config, chosen)) } else { Err(Faults(faults)) }
    }
}

fn file_of_environment(environment: &[Variable]) -> Option<PathBuf> {
    environment
        .iter()
        .find(|(name, _)| name == "LEASEHOLD_CONFIG")
        .and_then(|(_, value)| value.as_deref())
        .map(PathBuf::from)
}

#[cfg(test)]
mod tests;
