//! Free text with a few rules.

use std::path::PathBuf;

use super::{Description, Given, Kind};

/// A short name for people: 1 to 200 bytes of printable ASCII.
#[derive(Debug, Clone, Copy)]
pub struct Label;

impl Kind for Label {
    type Value = String;

    fn parse(&self, given: &Given) -> Result<String, String> {
        let text = given.single()?;
        if text.len() <= 200 && text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            Ok(text.to_owned())
        } else {
            Err("must be 1 to 200 bytes of printable ASCII".into())
        }
    }

    fn default(&self) -> String {
        String::new()
    }

    fn description(&self) -> Description {
        Description {
            placeholder: "NAME",
            default: String::new(),
            range: "1 to 200 bytes of printable ASCII".into(),
            secret: false,
            switch: false,
        }
    }
}

/// A file that is read; relative ones begin where the program was started.
#[derive(Debug, Clone, Copy)]
pub struct Path;

impl Kind for Path {
    type Value = PathBuf;

    fn parse(&self, given: &Given) -> Result<PathBuf, String> {
        Folder("").parse(given)
    }

    fn default(&self) -> PathBuf {
        PathBuf::new()
    }

    fn description(&self) -> Description {
        Description { placeholder: "FILE", ..Folder("").description() }
    }
}

/// A directory; relative ones begin where the program was started.
#[derive(Debug, Clone, Copy)]
pub struct Folder(pub &'static str);

impl Kind for Folder {
    type Value = PathBuf;

    fn parse(&self, given: &Given) -> Result<PathBuf, String> {
        let text = given.single()?;
        if text.contains('\0') { Err("must not hold NUL".into()) } else { Ok(text.into()) }
    }

    fn default(&self) -> PathBuf {
        self.0.into()
    }

    fn description(&self) -> Description {
        Description {
            placeholder: "DIR",
            default: self.0.to_owned(),
            range: "a path".into(),
            secret: false,
            switch: false,
        }
    }
}
