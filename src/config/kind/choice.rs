//! One of a few words.

use super::{Description, Given, Kind};

/// One of a few words, each with what it stands for. The first is the default.
#[derive(Debug, Clone, Copy)]
pub struct Choice<T: 'static>(pub &'static [(&'static str, T)]);

impl<T> Choice<T> {
    fn words(&self) -> String {
        self.0.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ")
    }
}

impl<T: Copy> Kind for Choice<T> {
    type Value = T;

    fn parse(&self, given: &Given) -> Result<T, String> {
        let text = given.single()?;
        self.0
            .iter()
            .find_map(|(word, value)| (*word == text).then_some(*value))
            .ok_or_else(|| format!("must be one of {}, and is '{text}'", self.words()))
    }

    fn default(&self) -> T {
        self.0[0].1
    }

    fn description(&self) -> Description {
        Description {
            placeholder: "WORD",
            default: self.0[0].0.to_owned(),
            range: self.words(),
            secret: false,
            switch: false,
        }
    }
}

/// Yes or no.
#[derive(Debug, Clone, Copy)]
pub struct Switch(pub bool);

impl Kind for Switch {
    type Value = bool;

    fn parse(&self, given: &Given) -> Result<bool, String> {
        match given.single()? {
            "true" => Ok(true),
            "false" => Ok(false),
            text => Err(format!("must be true or false, and is '{text}'")),
        }
    }

    fn default(&self) -> bool {
        self.0
    }

    fn description(&self) -> Description {
        Description {
            placeholder: "BOOL",
            default: self.0.to_string(),
            range: "true, false".into(),
            secret: false,
            switch: true,
        }
    }
}
