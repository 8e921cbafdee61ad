//! Idempotency and ordering keys.

use std::{fmt, sync::Arc};

use super::Invalid;

/// 1 to 200 printable ASCII characters, compared byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Arc<str>);

impl Key {
    /// Longest key, in bytes.
    pub const MAX_BYTES: usize = 200;

    /// The key in `field`.
    pub fn parse(field: &str, key: &str) -> Result<Self, Invalid> {
        let printable = key.bytes().all(|b| (0x20..=0x7e).contains(&b));
        if (1..=Self::MAX_BYTES).contains(&key.len()) && printable {
            Ok(Self(key.into()))
        } else {
            Err(Invalid::new(field, "must be 1 to 200 printable ASCII characters"))
        }
    }

    /// The key's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_printable_ascii_of_bounded_length() {
        assert!(Key::parse("k", &"x".repeat(200)).is_ok());
        assert!(Key::parse("k", " ~!'\"*/").is_ok());
        for bad in ["", "a\0", "a\tb", "é", "\u{7f}", &"x".repeat(201)] {
            assert!(Key::parse("k", bad).is_err(), "{bad:?}");
        }
    }
}
