//! What was said for each option: by the file, over it the environment, over it the flags.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::{
    declared::Declared,
    fault::{Fault, Origin},
    kind::{Given, Kind},
    sections::budget,
};
use crate::model::Caller;

/// A variable of the environment; no value where it is not valid text.
pub type Variable = (String, Option<String>);

/// The section whose sections are named after callers.
const CALLERS: &str = "callers";

/// Variables that steer the reading itself, or the commands that speak to a broker, and are no options.
const OWN_VARIABLES: [&str; 3] = ["LEASEHOLD_CONFIG", "LEASEHOLD_ADDRESS", "LEASEHOLD_CALLER"];

/// Variables that `lease --exec` sets for the commands that it runs begin so.
const JOB_VARIABLES: &str = "LEASEHOLD_JOB_";

/// What was decided for an option, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// By whom.
    pub origin: Origin,
    /// The value as it was written; nothing where it is a secret.
    pub text: Option<String>,
}

/// All that was said, and what is wrong with it.
pub(super) struct Layers {
    keys: Vec<String>,
    sections: BTreeSet<&'static str>,
    /// In rising order of precedence.
    given: BTreeMap<String, Vec<(Origin, Given)>>,
    chosen: BTreeMap<String, Chosen>,
    /// Callers with a section of their own.
    named: BTreeSet<Caller>,
    faulty: BTreeSet<String>,
    faults: Vec<Fault>,
}

impl Layers {
    /// Nothing said yet about the `declared` options.
    pub(super) fn new(declared: &[Declared]) -> Self {
        Self {
            keys: declared.iter().map(|option| option.key.clone()).collect(),
            sections: declared.iter().map(|option| option.section).filter(|name| !name.is_empty()).collect(),
            given: BTreeMap::new(),
            chosen: BTreeMap::new(),
            named: BTreeSet::new(),
            faulty: BTreeSet::new(),
            faults: Vec::new(),
        }
    }

    /// Takes what the file says.
    pub(super) fn add_file(&mut self, path: &Path, text: &str) {
        let table: toml::Table = match text.parse() {
            Ok(table) => table,
            Err(error) => {
                // the error's own text quotes the line at fault, and that may hold a password
                let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
                return self
                    .fault(format!("{}, line {line}", path.display()), format!("must be TOML: {}", error.message()));
            }
        };
        let origin = Origin::File(path.to_owned());
        for (name, value) in table {
            match value {
                toml::Value::Table(section) if self.sections.contains(name.as_str()) => {
                    for (option, value) in section {
                        match value {
                            toml::Value::Table(options) if name == CALLERS => {
                                self.add_caller(&origin, &option, options);
                            }
                            value => self.add_file_value(&origin, &format!("{name}.{option}"), &value),
                        }
                    }
                }
                toml::Value::Table(_) if !self.keys.contains(&name) => {
                    let rule = no_such("section", nearest(&name, self.sections.iter().copied()));
                    self.fault(origin.place(&format!("[{name}]")), rule);
                }
                value => self.add_file_value(&origin, &name, &value),
            }
        }
    }

    /// Takes a section of the file that is about one caller.
    fn add_caller(&mut self, origin: &Origin, name: &str, options: toml::Table) {
        let place = format!("[{CALLERS}.{name}]");
        match Caller::with_budget(name) {
            Ok(caller) => drop(self.named.insert(caller)),
            Err(invalid) => return self.fault(origin.place(&place), format!("is no caller: {}", invalid.rule)),
        }
        for (option, value) in options {
            let key = format!("{CALLERS}.{name}.{option}");
            if !budget::KEYS.contains(&option.as_str()) {
                let rule = no_such("option", nearest(&option, budget::KEYS.into_iter()));
                self.fault(origin.place(&key), rule);
                continue;
            }
            match scalar(&value) {
                Some(text) => self.say(&key, origin.clone(), Given::One(text)),
                None => self.refuse(&key, origin, "must be a text or a number".into()),
            }
        }
    }

    fn add_file_value(&mut self, origin: &Origin, key: &str, value: &toml::Value) {
        if !self.keys.iter().any(|known| known == key) {
            let rule = no_such("option", nearest(key, self.keys.iter().map(String::as_str)));
            return self.fault(origin.place(key), rule);
        }
        let given = match value {
            toml::Value::Array(items) => items.iter().map(scalar).collect::<Option<_>>().map(Given::Many),
            value => scalar(value).map(Given::One),
        };
        match given {
            Some(given) => self.say(key, origin.clone(), given),
            None => {
                self.refuse(key, origin, "must be a text, a number, true or false, or a list of texts".into());
            }
        }
    }

    /// Takes what the environment says. Variables that do not begin with `LEASEHOLD_` are passed over.
    pub(super) fn add_environment(&mut self, variables: &[Variable]) {
        for (name, value) in variables {
            let others = OWN_VARIABLES.contains(&name.as_str()) || name.starts_with(JOB_VARIABLES);
            if !name.starts_with("LEASEHOLD_") || others {
                continue;
            }
            if let (Some((caller, key)), Some(value)) = (caller_option(name), value) {
                self.named.insert(caller);
                self.say(&key, Origin::Environment, Given::One(value.clone()));
                continue;
            }
            let known = self.keys.iter().find(|key| Origin::Environment.place(key) == *name).cloned();
            match (known, value) {
                (Some(key), Some(value)) => self.say(&key, Origin::Environment, Given::One(value.clone())),
                (Some(key), None) => self.refuse(&key, &Origin::Environment, "must be valid UTF-8".into()),
                (None, value) if is_service_link(name, value.as_deref()) => {}
                (None, _) => {
                    let names: Vec<_> = self.keys.iter().map(|key| Origin::Environment.place(key)).collect();
                    let rule = no_such("option", nearest(name, names.iter().map(String::as_str)));
                    self.fault(name.clone(), rule);
                }
            }
        }
    }

    /// Takes what the command line says, by key.
    pub(super) fn add_flags(&mut self, flags: &[(String, String)]) {
        for (key, value) in flags {
            self.say(key, Origin::Flag, Given::One(value.clone()));
        }
    }

    /// Callers with a section of their own.
    pub(super) fn named_callers(&self) -> impl Iterator<Item = &Caller> {
        self.named.iter()
    }

    fn say(&mut self, key: &str, origin: Origin, given: Given) {
        self.given.entry(key.to_owned()).or_default().push((origin, given));
    }

    /// The value of an option: what the highest layer says. A fault in a lower one is a fault all the same.
    pub(super) fn read<K: Kind>(&mut self, key: &str, kind: &K) -> K::Value {
        let mut value = kind.default();
        for (origin, given) in self.given.remove(key).unwrap_or_default() {
            match kind.parse(&given) {
                Ok(parsed) => {
                    value = parsed;
                    let text = (!kind.description().secret).then(|| given.to_string());
                    self.chosen.insert(key.to_owned(), Chosen { origin, text });
                }
                Err(rule) => self.refuse(key, &origin, rule),
            }
        }
        value
    }

    /// A rule between options, `keys`, that holds or not. One whose option is at fault already is not looked at.
    pub(super) fn require(&mut self, holds: bool, keys: &[&str], rule: &str) {
        if holds || keys.iter().any(|key| self.faulty.contains(*key)) {
            return;
        }
        let places: Vec<_> = keys.iter().map(|key| self.origin(key).place(key)).collect();
        self.fault(places.join(" and "), rule.to_owned());
    }

    /// Who decided an option.
    pub(super) fn origin(&self, key: &str) -> &Origin {
        self.chosen.get(key).map_or(&Origin::Default, |chosen| &chosen.origin)
    }

    /// Notes a fault that no option has.
    pub(super) fn fault(&mut self, place: String, rule: String) {
        self.faults.push(Fault { place, rule });
    }

    fn refuse(&mut self, key: &str, origin: &Origin, rule: String) {
        self.faulty.insert(key.to_owned());
        self.fault(origin.place(key), rule);
    }

    /// Who decided what, and what is wrong.
    pub(super) fn finish(self) -> (BTreeMap<String, Chosen>, Vec<Fault>) {
        (self.chosen, self.faults)
    }
}

fn scalar(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(yes) => Some(yes.to_string()),
        _ => None,
    }
}

fn no_such(what: &str, nearest: Option<&str>) -> String {
    nearest.map_or_else(|| format!("is no {what}"), |name| format!("is no {what}; did you mean {name}?"))
}

fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// The caller that a variable speaks of, and the key of its option.
fn caller_option(variable: &str) -> Option<(Caller, String)> {
    let rest = variable.strip_prefix("LEASEHOLD_CALLERS_")?;
    budget::KEYS.into_iter().find_map(|option| {
        let name = rest.strip_suffix(&format!("_{}", option.to_ascii_uppercase()))?;
        let is_upper = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
        let caller = Caller::with_budget(&name.to_ascii_lowercase()).ok().filter(|_| is_upper)?;
        let key = format!("{CALLERS}.{caller}.{option}");
        Some((caller, key))
    })
}

/// Kubernetes sets such variables in every container beside a service called `leasehold`, unless told not to.
fn is_service_link(name: &str, value: Option<&str>) -> bool {
    let address = |text: &str| text.starts_with("tcp://") || text.starts_with("udp://");
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || (name.ends_with("_PORT") && value.is_some_and(address))
        || name.split_once("_PORT_").is_some_and(|(_, rest)| {
            let mut parts = rest.split('_');
            parts.next().is_some_and(|port| port.parse::<u16>().is_ok())
                && matches!(parts.next(), Some("TCP" | "UDP" | "SCTP"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_kubernetes_sets_for_a_service_are_no_options() {
        for (name, value) in [
            ("LEASEHOLD_SERVICE_HOST", "10.0.0.7"),
            ("LEASEHOLD_SERVICE_PORT_GRPC", "7070"),
            ("LEASEHOLD_PORT", "tcp://10.0.0.7:7070"),
            ("LEASEHOLD_PORT_7070_TCP", "tcp://10.0.0.7:7070"),
            ("LEASEHOLD_HEADLESS_PORT_7070_TCP_ADDR", "10.0.0.7"),
        ] {
            assert!(is_service_link(name, Some(value)), "{name}");
        }
        for (name, value) in [("LEASEHOLD_PORT", "7070"), ("LEASEHOLD_LISTN", "x"), ("LEASEHOLD_PORT_X_TCP", "x")] {
            assert!(!is_service_link(name, Some(value)), "{name}");
        }
    }
}
