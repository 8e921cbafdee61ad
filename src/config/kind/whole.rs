//! Whole numbers.

use std::{fmt::Display, str::FromStr};

use super::{Description, Given, Kind};

/// A whole number within bounds, both of them fine.
#[derive(Debug, Clone, Copy)]
pub struct Whole<T> {
    /// Where nobody says anything.
    pub default: T,
    /// Smallest.
    pub min: T,
    /// Largest.
    pub max: T,
}

impl<T> Whole<T> {
    /// From `min` to `max`.
    pub const fn new(default: T, min: T, max: T) -> Self {
        Self { default, min, max }
    }
}

impl<T: FromStr + PartialOrd + Display + Copy> Kind for Whole<T> {
    type Value = T;

    fn parse(&self, given: &Given) -> Result<T, String> {
        let text = given.single()?;
        text.parse()
            .ok()
            .filter(|number| (self.min..=self.max).contains(number))
            .ok_or_else(|| format!("must be a whole number from {} to {}, and is '{text}'", self.min, self.max))
    }

    fn default(&self) -> T {
        self.default
    }

    fn description(&self) -> Description {
        Description {
            placeholder: "COUNT",
            default: self.default.to_string(),
            range: format!("{} to {}", self.min, self.max),
            secret: false,
            switch: false,
        }
    }
}
