//! Parts of a whole.

use super::{Description, Given, Kind};
use crate::model::Share;

/// A part of a whole, above 0 to 1: `0.25`.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Where nobody says anything.
    pub default: Share,
}

impl Part {
    /// All of it where nobody says anything.
    pub const WHOLE: Self = Self { default: Share::WHOLE };
}

impl Kind for Part {
    type Value = Share;

    fn parse(&self, given: &Given) -> Result<Share, String> {
        let text = given.single()?;
        text.parse().map_err(|()| format!("must be a number above 0 to 1, and is '{text}'"))
    }

    fn default(&self) -> Share {
        self.default
    }

    fn description(&self) -> Description {
        Description {
            placeholder: "PART",
            default: self.default.to_string(),
            range: "above 0 to 1".to_owned(),
            secret: false,
            switch: false,
        }
    }
}
