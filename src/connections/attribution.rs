//! Which business process a connection works for, read from what its program says.

use super::{
    comments::{Comment, comments},
    name::Name,
    pairs::pairs,
};
use crate::store::engine::Quoting;

/// What names a connection's process, the best word first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Attribution {
    /// `conn_tag:NAME` in a comment of its statement.
    ConnTag,
    /// A key of a sqlcommenter comment.
    Sqlcommenter,
    /// Its application name.
    ApplicationName,
    /// Nothing.
    Nothing,
}

/// A connection's process and what names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributed {
    /// `unattributed` where nothing names it.
    pub name: Name,
    /// What names it.
    pub by: Attribution,
}

/// What a session says of itself.
#[derive(Debug, Clone, Copy)]
pub struct Said<'a> {
    /// The statement that it runs, or ran last.
    pub statement: &'a str,
    /// Only the statement's beginning is there.
    pub cut: bool,
    /// Its application name.
    pub application_name: &'a str,
    /// It is a broker's session, so that it may use the broker's names.
    pub broker: bool,
}

/// Reads what a session says of itself. Texts are of any content and length.
pub fn attribute(said: Said<'_>, quoting: Quoting) -> Attributed {
    let clean = |raw: &str| Name::clean(raw, said.broker);
    let comments = comments(said.statement, said.cut, quoting);
    if let Some(name) = comments.iter().find_map(|comment| conn_tag(*comment).and_then(clean)) {
        return Attributed { name, by: Attribution::ConnTag };
    }
    let pairs: Vec<_> = comments.into_iter().flat_map(pairs).collect();
    let value = |key: &str| pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
    let action = || match (value("controller"), value("action")) {
        (Some(controller), Some(action)) => Some(format!("{controller}.{action}")),
        (one, other) => one.or(other).map(str::to_owned),
    };
    let named = value("conn_tag")
        .and_then(clean)
        .or_else(|| value("application").and_then(clean))
        .or_else(|| action().as_deref().and_then(clean))
        .or_else(|| value("route").and_then(clean))
        .or_else(|| value("db_driver").and_then(clean));
    if let Some(name) = named {
        return Attributed { name, by: Attribution::Sqlcommenter };
    }
    match clean(said.application_name) {
        Some(name) => Attributed { name, by: Attribution::ApplicationName },
        None => Attributed { name: Name::unattributed(), by: Attribution::Nothing },
    }
}

/// What follows `conn_tag:` in a comment. A name that goes on up to where the statement was cut may be another's beginning, so
/// it is none.
fn conn_tag(comment: Comment<'_>) -> Option<&str> {
    const KEY: &str = "conn_tag:";
    let text = comment.text;
    text.match_indices(KEY).find_map(|(at, _)| {
        let continues =
            text[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
        let rest = &text[at + KEY.len()..];
        let ends = |c: char| c.is_whitespace() || c.is_control() || matches!(c, ',' | ';' | '*' | '\'' | '"' | '`');
        let end = rest.find(ends);
        let name = &rest[..end.unwrap_or(rest.len())];
        let is_sure = end.is_some() || comment.whole;
        (!continues && !name.is_empty() && is_sure).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const POSTGRES: Quoting =
        Quoting { backslashes: false, dollars: true, backticks: false, hashes: false, nesting: true };

    fn read(statement: &str, application_name: &str) -> (String, Attribution) {
        let said = Said { statement, cut: false, application_name, broker: false };
        let Attributed { name, by } = attribute(said, POSTGRES);
        (name.to_string(), by)
    }

    #[test]
    fn the_best_word_for_a_statement_is_taken() {
        use Attribution::{ApplicationName, ConnTag, Nothing, Sqlcommenter};
        for (statement, application, name, by) in [
            ("/* conn_tag:checkout_completion */ select 1", "psql", "checkout_completion", ConnTag),
            ("select 1 /* conn_tag:checkout */", "", "checkout", ConnTag),
            ("select 1 -- conn_tag:checkout", "", "checkout", ConnTag),
            ("select 1 /* req=7 conn_tag:checkout,v=2 */", "", "checkout", ConnTag),
            ("select 1 /*a*/ /* conn_tag:checkout*/ /*conn_tag:later*/", "", "checkout", ConnTag),
            ("select 1 /* conn_tag: conn_tag:checkout */", "", "checkout", ConnTag),
            ("select 1 /*application='shop'*/ /* conn_tag:checkout */", "", "checkout", ConnTag),
            ("select 1 /*conn_tag='checkout'*/", "", "checkout", Sqlcommenter),
            ("select 1 /*action='show',conn_tag='checkout'*/", "", "checkout", Sqlcommenter),
            ("select 1 /*action='show',application='Web%20Shop',controller='orders'*/", "", "web_shop", Sqlcommenter),
            ("select 1 /*action='show',controller='orders'*/", "", "orders.show", Sqlcommenter),
            ("select 1 /*controller='orders',route='%2Fx'*/", "", "orders", Sqlcommenter),
            ("select 1 /*db_driver='psycopg2',route='%2Forders%2F%3Aid'*/", "", "orders_id", Sqlcommenter),
            (
                "select 1 /*db_driver='django.db.backends.postgresql'*/",
                "x",
                "django.db.backends.postgresql",
                Sqlcommenter,
            ),
            ("select 1 /*application:Shop,controller:orders,action:show*/", "x", "shop", Sqlcommenter),
            ("select 1 /*application='',route='%20'*/", "psql", "psql", ApplicationName),
            (
                "select 1 /*traceparent='00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'*/",
                "a b",
                "a_b",
                ApplicationName,
            ),
            ("select 1", "PostgreSQL JDBC Driver", "postgresql_jdbc_driver", ApplicationName),
            ("select 1", "", "unattributed", Nothing),
            ("", "\u{1}\u{7f}", "unattributed", Nothing),
        ] {
            assert_eq!(read(statement, application), (name.to_owned(), by), "{statement}");
        }
    }

    #[test]
    fn a_tag_in_a_literal_is_data_and_charges_nobody() {
        for statement in [
            "insert into t values ('/* conn_tag:victim */')",
            "insert into t values ($$ /* conn_tag:victim */ $$)",
            "insert into t values (E'\\'/* conn_tag:victim */')",
            "select \"/* conn_tag:victim */\"",
            "insert into t values ('it''s -- conn_tag:victim",
        ] {
            assert_eq!(read(statement, "psql"), ("psql".to_owned(), Attribution::ApplicationName), "{statement}");
        }
    }

    #[test]
    fn another_word_that_ends_alike_is_no_tag() {
        for statement in
            ["/* my_conn_tag:x */", "/* x.conn_tag:x */", "/* conn_tag */", "/* conn_tag:*/", "/* conn_tag: x */"]
        {
            assert_eq!(read(statement, "").1, Attribution::Nothing, "{statement}");
        }
    }

    #[test]
    fn a_name_that_was_cut_is_not_believed() {
        let read = |statement: &str| {
            let said = Said { statement, cut: true, application_name: "app", broker: false };
            attribute(said, POSTGRES).name.to_string()
        };
        assert_eq!(read("select 1 /* conn_tag:checkout_compl"), "app");
        assert_eq!(read("select 1 -- conn_tag:checkout_compl"), "app");
        assert_eq!(read("select 1 /* conn_tag:checkout "), "checkout");
        assert_eq!(read("select 1 /*application='shop',rou"), "shop");
        assert_eq!(read("select 1 /*application='sho"), "app");
        assert_eq!(read("/* conn_tag:checkout */ select 1 + /* "), "checkout");
    }

    #[test]
    fn only_brokers_use_the_brokers_names() {
        let statement = "/* conn_tag:leasehold.reaper */ select 1";
        let read = |broker| attribute(Said { statement, cut: false, application_name: "", broker }, POSTGRES);
        assert_eq!(read(true).name.as_str(), "leasehold.reaper");
        assert_eq!(read(false).name.as_str(), "foreign.leasehold.reaper");
    }

    #[test]
    fn ten_kibibytes_of_anything_are_read_quickly() {
        let begun = std::time::Instant::now();
        for filler in ["/*", "'", "$$", "$a", "conn_tag:", "a='b',", "%", "\\", "\u{1}", "-- ", "\u{10ffff}"] {
            let text = filler.repeat(10_240 / filler.len());
            let (name, _) = read(&text, &text);
            assert!(name.len() <= 64);
            let (name, _) = read(&format!("/*{text}"), "");
            assert!(name.len() <= 64);
        }
        assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    }

    proptest! {
        #[test]
        fn whatever_stands_there_gives_a_safe_name(statement in any::<String>(), application in any::<String>(), cut: bool) {
            let said = Said { statement: &statement, cut, application_name: &application, broker: false };
            let name = attribute(said, POSTGRES).name;
            prop_assert!(!name.as_str().is_empty() && name.as_str().len() <= 64);
            prop_assert!(name.as_str().bytes().all(|b| b.is_ascii_graphic()));
            prop_assert!(!name.as_str().starts_with("leasehold."));
        }

        #[test]
        fn our_own_tag_is_found_in_front_of_any_statement(statement in any::<String>()) {
            let (name, by) = read(&format!("/* conn_tag:checkout */ {statement}"), "");
            prop_assert_eq!((name.as_str(), by), ("checkout", Attribution::ConnTag));
        }

        #[test]
        fn data_in_a_literal_never_changes_the_name(data in any::<String>()) {
            let literal = data.replace('\'', "''");
            let (name, _) = read(&format!("insert into t values ('{literal}') /* conn_tag:checkout */"), "");
            prop_assert_eq!(name, "checkout");
        }
    }
}
