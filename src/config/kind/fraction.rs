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
}
