//! Options as they are declared: each once, with its key, kind and line of documentation. Parsing, validation, `--help` and
//! docs/configuration.md all come from these declarations.

use super::{
    fault,
    kind::{Description, Kind},
    layers::Layers,
};

/// An option, for help and documentation.
#[derive(Debug, Clone)]
pub struct Declared {
    /// Its section in the file; empty for the options outside of any.
    pub section: &'static str,
    /// Its key in the file, with its section: `lanes.count`.
    pub key: String,
    /// What it is for.
    pub doc: &'static str,
    /// Its kind in words.
    pub description: Description,
}

impl Declared {
    /// The option `name` of `section`.
    pub(super) fn new(section: &'static str, name: &str, doc: &'static str, kind: &impl Kind) -> Self {
        Self { section, key: key(section, name), doc: doc.trim(), description: kind.description() }
    }

    /// Its variable: `LEASEHOLD_LANES_COUNT`.
    pub fn variable(&self) -> String {
        fault::variable(&self.key)
    }

    /// Its flag, without the dashes: `lanes-count`.
    pub fn flag(&self) -> String {
        fault::flag(&self.key)
    }
}

/// The key of the option `name` of `section`.
pub(super) fn key(section: &str, name: &str) -> String {
    if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") }
}

/// Ties a kind to the type of its field.
pub(super) const fn of<T, K: Kind<Value = T>>(kind: K) -> K {
    kind
}

/// Options that belong together.
pub(super) trait Section: Sized {
    /// Name in the file; empty for the options outside of any section.
    const NAME: &'static str;
    /// What its options are about.
    const ABOUT: &'static str;

    /// Its options, in the order in which people read them.
    fn declared() -> Vec<Declared>;

    /// Its values. What is wrong with them is kept by the layers.
    fn read(layers: &mut Layers) -> Self;
}

/// Declares a section: a struct whose fields are options, each with its documentation, type and kind.
macro_rules! section {
    ($(#[doc = $about:literal])+ $name:ident as $section:literal {
        $($(#[doc = $doc:literal])+ $field:ident: $type:ty = $kind:expr;)+
    }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        impl $crate::config::declared::Section for $name {
            const NAME: &'static str = $section;
            const ABOUT: &'static str = concat!($($about),+);

            fn declared() -> Vec<$crate::config::Declared> {
                vec![$($crate::config::Declared::new($section, stringify!($field), concat!($($doc),+), &$crate::config::declared::of::<$type, _>($kind))),+]
            }

            fn read(layers: &mut $crate::config::layers::Layers) -> Self {
                Self { $($field: layers.read(&$crate::config::declared::key($section, stringify!($field)), &$crate::config::declared::of::<$type, _>($kind))),+ }
            }
        }
    };
}

pub(super) use section;
