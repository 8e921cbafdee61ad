//! Kinds of options: how a value is written, which values are fine, what holds where nobody says anything.

mod address;
mod choice;
mod collector;
mod database;
mod fraction;
mod identifier;
mod names;
mod pairs;
mod part;
mod size;
mod span;
mod text;
mod whole;

use std::fmt;

pub use self::{
    address::Address,
    choice::{Choice, Switch},
    collector::Collector,
    database::{Database, DatabaseUrl},
    fraction::{Fraction, Portion},
    identifier::Identifier,
    names::CallerNames,
    pairs::{Pairs, SecretPairs, TextPairs},
    part::Part,
    size::Size,
    span::Span,
    text::{Folder, Label, Path},
    whole::Whole,
};

/// What somebody said for an option, before anything is known about it.
#[derive(Clone, PartialEq, Eq)]
pub enum Given {
    /// A single value, as text.
    One(String),
    /// A list, which only a file can write as such.
    Many(Vec<String>),
}

impl Given {
    /// The text of a single value.
    pub fn single(&self) -> Result<&str, String> {
        match self {
            Self::One(text) if text.is_empty() => Err("must not be empty".into()),
            Self::One(text) => Ok(text),
            Self::Many(_) => Err("must be a single value, not a list".into()),
        }
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(text) => f.write_str(text),
            Self::Many(texts) => f.write_str(&texts.join(", ")),
        }
    }
}

/// How an option is written and what it may be.
pub trait Kind {
    /// What the program works with.
    type Value;

    /// The value, or the rule that it breaks: a sentence without a full stop that begins with "must". Nothing is ever clamped.
    fn parse(&self, given: &Given) -> Result<Self::Value, String>;

    /// The value where nobody says anything.
    fn default(&self) -> Self::Value;

    /// For help and documentation.
    fn description(&self) -> Description;
}

/// A kind in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Stands for the value in help texts: `COUNT`.
    pub placeholder: &'static str,
    /// The default as an operator would write it; empty where there is none.
    pub default: String,
    /// Which values are fine.
    pub range: String,
    /// Its value is never shown.
    pub secret: bool,
    /// A flag without a value means yes.
    pub switch: bool,
}

/// An option that may be left out. `none` takes back what a layer further down said.
#[derive(Debug, Clone, Copy)]
pub struct Optional<K>(pub K);

impl<K: Kind> Kind for Optional<K> {
    type Value = Option<K::Value>;

    fn parse(&self, given: &Given) -> Result<Self::Value, String> {
        if *given == Given::One("none".into()) { Ok(None) } else { self.0.parse(given).map(Some) }
    }

    fn default(&self) -> Self::Value {
        None
    }

    fn description(&self) -> Description {
        let inner = self.0.description();
        Description { default: String::new(), range: format!("{}, or none", inner.range), ..inner }
    }
}
