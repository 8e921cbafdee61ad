//! The database's URL from a file of its own, as Kubernetes and systemd hand out secrets.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use super::{
    fault::Origin,
    kind::{Database, DatabaseUrl, Given, Kind as _},
    layers::Layers,
};

const KEY: &str = "database_url_file";

/// Longest file that is read.
const AT_MOST: u64 = 16 << 10;

/// The database that the file at `path` names. What is wrong with it is kept by the layers, without a word of its content.
pub(super) fn read(path: &Path, layers: &mut Layers) -> Option<Database> {
    let alone = layers.origin("database_url") == &Origin::Default;
    layers.require(alone, &["database_url", KEY], "only one of the two may name the database");
    let parsed = match content(path) {
        Ok(text) => {
            DatabaseUrl.parse(&Given::One(text.trim().to_owned())).map_err(|rule| format!("what it holds {rule}"))
        }
        Err(error) => Err(format!("cannot be read: {error}")),
    };
    match parsed {
        Ok(database) => Some(database),
        Err(rule) => {
            let place = layers.origin(KEY).place(KEY);
            layers.fault(place, format!("{}: {rule}", path.display()));
            None
        }
    }
}

fn content(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(AT_MOST + 1).read_to_string(&mut text)?;
    if read as u64 > AT_MOST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it has more than {AT_MOST} bytes")));
    }
    Ok(text)
}
