//! Numbers of bytes.

use super::{Description, Given, Kind};

const UNITS: [(&str, usize); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// A number of bytes within bounds: `65536`, `64 KiB`, `64KiB`, `3 MiB`.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Where nobody says anything.
    pub default: usize,
    /// Smallest.
    pub min: usize,
    /// Largest.
    pub max: usize,
}

impl Size {
    /// From `min` to `max`.
    pub const fn new(default: usize, min: usize, max: usize) -> Self {
        Self { default, min, max }
    }
}

impl Kind for Size {
    type Value = usize;

    fn parse(&self, given: &Given) -> Result<usize, String> {
        let text = given.single()?;
        read(text)
            .filter(|size| (self.min..=self.max).contains(size))
            .ok_or_else(|| format!("must be a size from {} to {}, and is '{text}'", write(self.min), write(self.max)))
    }

    fn default(&self) -> usize {
        self.default
    }

    fn description(&self) -> Description {
        Description {
            placeholder: "SIZE",
            default: write(self.default),
            range: format!("{} to {}", write(self.min), write(self.max)),
            secret: false,
            switch: false,
        }
    }
}

fn read(text: &str) -> Option<usize> {
    let (number, factor) = UNITS
        .iter()
        .find_map(|(unit, factor)| text.strip_suffix(unit).map(|number| (number.trim_end(), *factor)))
        .unwrap_or((text, 1));
    number.parse::<usize>().ok()?.checked_mul(factor)
}

/// As an operator would write it.
fn write(size: usize) -> String {
    match UNITS.iter().find(|(_, factor)| size >= *factor && size.is_multiple_of(*factor)) {
        Some((unit, factor)) => format!("{} {unit}", size / factor),
        None => size.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_written() {
        for size in [1, 1_000, 1 << 10, 3 << 20, 64 << 20, 5 << 30, (1 << 20) + 1] {
            assert_eq!(read(&write(size)), Some(size), "{}", write(size));
        }
        assert_eq!(read("64MiB"), Some(64 << 20));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for bad in ["", "MiB", "-1", "1.5 MiB", "1 MB", "1 mib", "99999999999999999999 GiB", "18446744073709551615 KiB"]
        {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }
}
