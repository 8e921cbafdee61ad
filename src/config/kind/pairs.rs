//! Names and values.

use std::marker::PhantomData;

use secrecy::{ExposeSecret as _, SecretString};

use super::{Description, Given, Kind};

/// Pairs at most.
const AT_MOST: usize = 32;
/// Bytes of a name or a value at most.
const BYTES: usize = 4 << 10;
const RULE: &str =
    "must be NAME=VALUE, several separated by commas, of printable ASCII and with names of [A-Za-z0-9._-]";

/// Pairs of `NAME=VALUE`; a file may write a list, the environment and flags separate them by commas. None by default.
#[derive(Debug, Clone, Copy)]
pub struct Pairs<V>(PhantomData<V>);

/// Pairs that may be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextPairs(Vec<(String, String)>);

/// Pairs whose values are secret.
#[derive(Debug, Clone, Default)]
pub struct SecretPairs(Vec<(String, SecretString)>);

impl Pairs<TextPairs> {
    /// Ones that may be shown.
    pub const fn text() -> Self {
        Self(PhantomData)
    }
}

impl Pairs<SecretPairs> {
    /// Ones whose values are secret.
    pub const fn secret() -> Self {
        Self(PhantomData)
    }
}

impl TextPairs {
    /// Names and values, in the order in which they were written.
    pub fn pairs(&self) -> Vec<(String, String)> {
        self.0.clone()
    }
}

impl SecretPairs {
    /// Names and values, in the order in which they were written.
    pub fn pairs(&self) -> Vec<(String, String)> {
        self.0.iter().map(|(name, value)| (name.clone(), value.expose_secret().to_owned())).collect()
    }
}

impl Kind for Pairs<TextPairs> {
    type Value = TextPairs;

    fn parse(&self, given: &Given) -> Result<TextPairs, String> {
        parse(given).map(TextPairs)
    }

    fn default(&self) -> TextPairs {
        TextPairs::default()
    }

    fn description(&self) -> Description {
        description(false)
    }
}

impl Kind for Pairs<SecretPairs> {
    type Value = SecretPairs;

    fn parse(&self, given: &Given) -> Result<SecretPairs, String> {
        let pairs = parse(given)?;
        Ok(SecretPairs(pairs.into_iter().map(|(name, value)| (name, value.into())).collect()))
    }

    fn default(&self) -> SecretPairs {
        SecretPairs::default()
    }

    fn description(&self) -> Description {
        description(true)
    }
}

/// The rule never quotes what was given: it may be secret.
fn parse(given: &Given) -> Result<Vec<(String, String)>, String> {
    let texts: Vec<&str> = match given {
        Given::One(text) if text.is_empty() => Vec::new(),
        Given::One(text) => text.split(',').map(str::trim).collect(),
        Given::Many(texts) => texts.iter().map(String::as_str).collect(),
    };
    if texts.len() > AT_MOST {
        return Err(format!("must be {AT_MOST} pairs at most"));
    }
    texts.into_iter().map(|text| pair(text).ok_or_else(|| RULE.to_owned())).collect()
}

fn pair(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    let named = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    let fits = name.len() <= BYTES && value.len() <= BYTES && value.bytes().all(|b| (b' '..=b'~').contains(&b));
    (named && fits).then(|| (name.to_owned(), value.to_owned()))
}

fn description(secret: bool) -> Description {
    Description {
        placeholder: "PAIRS",
        default: String::new(),
        range: format!("up to {AT_MOST} of `NAME=VALUE`"),
        secret,
        switch: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_come_as_a_list_or_between_commas() {
        let expected = [("a.b".to_owned(), "1".to_owned()), ("c".to_owned(), "x=y z".to_owned())];
        let listed = Pairs::text().parse(&Given::Many(vec!["a.b=1".into(), "c=x=y z".into()])).expect("a list");
        assert_eq!(listed.pairs(), expected);
        assert_eq!(Pairs::text().parse(&Given::One("a.b=1, c=x=y z".into())).expect("commas"), listed);
        assert!(Pairs::text().parse(&Given::One(String::new())).expect("none").pairs().is_empty());
    }

    #[test]
    fn what_is_no_pair_is_refused_and_never_shown() {
        for bad in ["hunter2", "=hunter2", "a b=hunter2", "a=hunter2\nb", "a=hunter2,", "é=hunter2"] {
            let rule = Pairs::secret().parse(&Given::One(bad.into())).expect_err(bad);
            assert!(!rule.contains("hunter2"), "{rule}");
        }
        let secret = Pairs::secret().parse(&Given::One("authorization=hunter2".into())).expect("a header");
        assert!(!format!("{secret:?}").contains("hunter2"));
    }
}
