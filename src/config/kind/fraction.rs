//! Parts of a whole.

use super::{Description, Given, Kind};

/// A number from 0 to 1, with a default.
#[derive(Debug, Clone, Copy)]
pub struct Fraction(pub f64);

impl Kind for Fraction {
    type Value = f64;

    fn parse(&self, given: &Given) -> Result<f64, String> {
        let text = given.single()?;
        let digits = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        text.parse()
            .ok()
            .filter(|part| digits && (0.0..=1.0).contains(part))
            .ok_or_else(|| format!("must be a number from 0 to 1, and is '{text}'"))
    }

    fn default(&self) -> f64 {
        self.0
    }

    fn description(&self) -> Description {
        Description {
            placeholder: "PART",
            default: self.0.to_string(),
            range: "0 to 1".into(),
            secret: false,
            switch: false,
        }
    }
}

/// A number from one above 0 to 1, with a default.
#[derive(Debug, Clone, Copy)]
pub struct Portion {
    default: f64,
    min: f64,
}

impl Portion {
    /// `default`, from `min` to 1.
    pub const fn new(default: f64, min: f64) -> Self {
        Self { default, min }
    }
}

impl Kind for Portion {
    type Value = f64;

    fn parse(&self, given: &Given) -> Result<f64, String> {
        let part = Fraction(self.default).parse(given)?;
        if part >= self.min {
            Ok(part)
        } else {
            Err(format!("must be a number from {} to 1, and is '{part}'", self.min))
        }
    }

    fn default(&self) -> f64 {
        self.default
    }

    fn description(&self) -> Description {
        Description { range: format!("{} to 1", self.min), ..Fraction(self.default).description() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_lies_between_nothing_and_everything() {
        let parse = |text: &str| Fraction(0.1).parse(&Given::One(text.into()));
        assert_eq!((parse("0"), parse("0.25"), parse("1")), (Ok(0.0), Ok(0.25), Ok(1.0)));
        for bad in ["", "-0.1", "1.01", "NaN", "inf", "1e-3", "50%", " 0.5", "."] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_portion_is_more_than_nothing() {
        let parse = |text: &str| Portion::new(0.2, 0.01).parse(&Given::One(text.into()));
        assert_eq!((parse("0.01"), parse("1")), (Ok(0.01), Ok(1.0)));
        for bad in ["0", "0.009", "1.5", "-1", ""] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
