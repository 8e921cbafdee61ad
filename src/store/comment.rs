//! Which caller a statement runs for: a comment at the head of its text.
//!
//! Texts are interned, since the prepared statements of every connection are found by them: a caller and a statement give
//! the same text each time, and the number of texts is bounded whatever names clients make up.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::model::Caller;

/// A caller that ran nothing for this long gives its texts up to one that waits for a place.
const UNUSED: Duration = Duration::from_mins(10);

/// Statement texts with their caller's comment; shared by all sessions of an engine.
///
/// Callers named in the configuration and the broker's own always have texts of their own. Of the others the first ones do,
/// up to the bound; the rest run as `other`.
#[derive(Debug)]
pub struct Comments {
    places: usize,
    configured: HashSet<Caller>,
    renaming: Option<(&'static str, String)>,
    callers: Mutex<HashMap<Caller, Texts>>,
}

/// The texts of one caller.
#[derive(Debug)]
struct Texts {
    /// Came without being named in the configuration, so it takes one of the places.
    guest: bool,
    used: Instant,
    /// By the address of the statement, which is static: hashing kilobytes of SQL for each act would cost more than the rest.
    interned: HashMap<(usize, usize), Arc<str>>,
}

impl Comments {
    /// Room for `bound` callers, those in `configured` among them.
    pub fn new(bound: usize, configured: impl IntoIterator<Item = Caller>) -> Self {
        let configured: HashSet<Caller> = configured.into_iter().collect();
        Self { places: bound.saturating_sub(configured.len()), configured, renaming: None, callers: Mutex::default() }
    }

    /// From here on `name`, wherever it stands in a statement, is written as `as_name`.
    #[must_use]
    pub fn renaming(mut self, name: &'static str, as_name: &str) -> Self {
        self.renaming = (name != as_name).then(|| (name, as_name.to_owned()));
        self
    }

    /// `statement` with the comment of `caller` in front and without the lines of comment that it begins with itself.
    pub fn text(&self, caller: &Caller, statement: &'static str) -> Arc<str> {
        self.text_at(caller, statement, Instant::now())
    }

    /// The same for a text that is not kept, since it has values in it or runs seldom.
    pub fn once(&self, caller: &Caller, statement: &str) -> Arc<str> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        let (shown, _) = self.seat(&mut callers, caller, Instant::now());
        self.tagged(&shown, statement)
    }

    fn text_at(&self, caller: &Caller, statement: &'static str, now: Instant) -> Arc<str> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        let (shown, texts) = self.seat(&mut callers, caller, now);
        let address = (statement.as_ptr().addr(), statement.len());
        texts.interned.entry(address).or_insert_with(|| self.tagged(&shown, statement)).clone()
    }

    /// Under which name `caller` runs, which has a place from now on, and what is kept under it.
    fn seat<'c>(
        &self,
        callers: &'c mut HashMap<Caller, Texts>,
        caller: &Caller,
        now: Instant,
    ) -> (Caller, &'c mut Texts) {
        let shown =
            if cfg!(leasehold_without_attribution) { Caller::other() } else { self.admit(callers, caller, now) };
        let texts = callers.entry(shown.clone()).or_insert_with(|| Texts {
            guest: !self.has_a_place(&shown),
            used: now,
            interned: HashMap::new(),
        });
        texts.used = now;
        (shown, texts)
    }

    /// Under which name `caller` runs: its own, or `other` where all places are in use.
    fn admit(&self, callers: &mut HashMap<Caller, Texts>, caller: &Caller, now: Instant) -> Caller {
        if callers.contains_key(caller) || self.has_a_place(caller) {
            return caller.clone();
        }
        if callers.values().filter(|texts| texts.guest).count() >= self.places {
            let oldest = callers.iter().filter(|(_, texts)| texts.guest).min_by_key(|(_, texts)| texts.used);
            match oldest {
                Some((unused, texts)) if now.duration_since(texts.used) >= UNUSED => {
                    let unused = unused.clone();
                    callers.remove(&unused);
                }
                _ => return Caller::other(),
            }
        }
        caller.clone()
    }

    /// Whether `caller` has a place whatever the others do. The broker's own names are few, and clients cannot take one.
    fn has_a_place(&self, caller: &Caller) -> bool {
        let name = caller.as_str();
        name.starts_with("leasehold.") || name == "other" || name == "unattributed" || self.configured.contains(caller)
    }

    /// The grammar of caller names leaves nothing that could end the comment.
    fn tagged(&self, caller: &Caller, statement: &str) -> Arc<str> {
        let mut rest = statement;
        while let Some((line, after)) = rest.split_once('\n')
            && (line.trim().is_empty() || line.starts_with("--"))
        {
            rest = after;
        }
        let rest = rest.trim_end();
        let comment =
            if cfg!(leasehold_without_attribution) { String::new() } else { format!("/* conn_tag:{caller} */ ") };
        match &self.renaming {
            Some((name, as_name)) => (comment + &renamed(rest, name, as_name)).into(),
            None => (comment + rest).into(),
        }
    }
}

/// `statement` with `as_name` wherever it says `name`: as a word of its own, or as the beginning of one where it ends with an
/// underscore. Never within another word.
pub(super) fn renamed(statement: &str, name: &str, as_name: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins_words = name.ends_with('_');
    let mut text = String::with_capacity(statement.len());
    let mut before = None;
    let mut rest = statement;
    while let Some(at) = rest.find(name) {
        let after = &rest[at + name.len()..];
        text.push_str(&rest[..at]);
        before = rest[..at].chars().next_back().or(before);
        let stands = !before.is_some_and(is_part) && (begins_words || !after.starts_with(is_part));
        text.push_str(if stands { as_name } else { name });
        before = name.chars().next_back();
        rest = after;
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_of_texts_that_are_not_kept_take_places_as_well() {
        let comments = Comments::new(2, []);
        let name = |text| Caller::parse(text).expect("a name");
        for known in ["a", "b"] {
            assert!(comments.once(&name(known), "select 1").contains(known));
        }
        assert!(comments.once(&name("c"), "select 1").contains("conn_tag:other"), "two places, and both are taken");
    }

    const STATEMENT: &str = "-- $1: nothing\n-- Promises nothing.\nselect 1 -- kept\n";

    fn caller(name: &str) -> Caller {
        Caller::parse(name).expect("a caller name")
    }

    #[test]
    fn the_comment_leads_and_the_text_is_interned() {
        let comments = Comments::new(2, []);
        let first = comments.text(&caller("checkout"), STATEMENT);
        assert_eq!(&*first, "/* conn_tag:checkout */ select 1 -- kept");
        assert!(Arc::ptr_eq(&first, &comments.text(&caller("checkout"), STATEMENT)));
        assert_eq!(&*comments.once(&caller("checkout"), "a;\nb"), "/* conn_tag:checkout */ a;\nb");
    }

    #[test]
    fn a_renamed_table_is_renamed_in_the_statement_alone() {
        let comments = Comments::new(2, []).renaming("leasehold_", "jobs_");
        let text = comments.text(&Caller::broker("lane"), "-- leasehold_x\nselect 1 from leasehold_x, leasehold_y");
        assert_eq!(&*text, "/* conn_tag:leasehold.lane */ select 1 from jobs_x, jobs_y");
        assert_eq!(&*comments.once(&Caller::broker("lane"), "leasehold_z"), "/* conn_tag:leasehold.lane */ jobs_z");
    }

    #[test]
    fn a_name_is_replaced_as_a_word_and_nowhere_else() {
        let written = "create schema if not exists leasehold; set search_path = pg_catalog, leasehold, pg_temp;\n\
                       select leasehold.ack('leasehold.job'::regclass), leasehold_x, x_leasehold, leaseholder, leaseholdleasehold";
        let replaced = "create schema if not exists jobs_a; set search_path = pg_catalog, jobs_a, pg_temp;\n\
                        select jobs_a.ack('jobs_a.job'::regclass), leasehold_x, x_leasehold, leaseholder, leaseholdleasehold";
        assert_eq!(renamed(written, "leasehold", "jobs_a"), replaced);
        assert_eq!(renamed("select 1", "leasehold", "jobs_a"), "select 1");
        assert_eq!(renamed("x_leasehold_y leasehold_y", "leasehold_", "a_"), "x_leasehold_y a_y");
    }

    #[test]
    fn callers_past_the_bound_run_as_other() {
        let comments = Comments::new(2, [caller("named")]);
        let text = |name: &str| comments.text(&caller(name), "x").to_string();
        assert_eq!(text("a"), "/* conn_tag:a */ x");
        assert_eq!(text("b"), "/* conn_tag:other */ x");
        assert_eq!(&*comments.once(&caller("b"), "x"), "/* conn_tag:other */ x");
        assert_eq!(text("named"), "/* conn_tag:named */ x");
        assert_eq!(&*comments.text(&Caller::broker("reaper"), "x"), "/* conn_tag:leasehold.reaper */ x");
        assert_eq!(&*comments.text(&Caller::unattributed(), "x"), "/* conn_tag:unattributed */ x");
        assert_eq!(text("a"), "/* conn_tag:a */ x");
    }

    #[test]
    fn a_caller_unused_for_ten_minutes_gives_its_place_up() {
        let comments = Comments::new(1, []);
        let start = Instant::now();
        let text = |name: &str, at: Duration| comments.text_at(&caller(name), "x", start + at).to_string();
        assert_eq!(text("a", Duration::ZERO), "/* conn_tag:a */ x");
        assert_eq!(text("b", Duration::from_secs(599)), "/* conn_tag:other */ x");
        assert_eq!(text("a", Duration::from_mins(1)), "/* conn_tag:a */ x");
        assert_eq!(text("b", Duration::from_secs(659)), "/* conn_tag:other */ x");
        assert_eq!(text("b", Duration::from_mins(11)), "/* conn_tag:b */ x");
        assert_eq!(text("a", Duration::from_secs(661)), "/* conn_tag:other */ x");
    }

    #[test]
    fn fifty_thousand_names_keep_as_many_texts_as_the_bound_allows() {
        let comments = Comments::new(64, []);
        for n in 0..50_000 {
            comments.text(&caller(&format!("caller-{n}")), "x");
        }
        assert_eq!(comments.callers.lock().expect("not poisoned").len(), 65);
    }
}
