//! Names in a database.

use super::{Description, Given, Kind};

/// Longest name, so that what is made of it (channels, indexes) keeps within what databases allow.
const BYTES: usize = 40;

/// A name in a database that needs no quotes anywhere: small letters, digits and underscores, no word of SQL's own.
#[derive(Debug, Clone, Copy)]
pub struct Identifier(pub &'static str);

/// What SQL keeps for itself in any of the places in which a name is written, and schemas that are not ours to use.
const TAKEN: &str = "\
    all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both case cast char \
    character check coalesce collate collation column concurrently constraint create cross current_catalog current_date \
    current_role current_schema current_time current_timestamp current_user dec decimal default deferrable desc distinct do \
    else end except exists extract false fetch float for foreign freeze from full grant greatest group grouping having ilike \
    in initially inner inout int integer intersect interval into is isnull join json json_array json_arrayagg json_exists \
    json_object json_objectagg json_query json_scalar json_serialize json_table json_value lateral leading least left like \
    limit localtime localtimestamp merge_action national natural nchar none normalize not notnull null nullif numeric offset \
    on only or order out outer overlaps overlay placing position precision primary real references returning right row \
    select session_user setof similar smallint some substring symmetric system_user table tablesample then time timestamp \
    to trailing treat trim true union unique user using values varchar variadic verbose when where window with \
    xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable \
    information_schema public";

impl Kind for Identifier {
    type Value = String;

    fn parse(&self, given: &Given) -> Result<String, String> {
        let text = given.single()?;
        let begins = text.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
        let goes_on = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !begins || !goes_on || text.len() > BYTES {
            return Err(format!("must match [a-z_][a-z0-9_]{{0,{}}}", BYTES - 1));
        }
        if text.starts_with("pg_") || TAKEN.split(' ').any(|taken| taken == text) {
            return Err(format!("must not be '{text}', which is taken by the database or by SQL"));
        }
        Ok(text.to_owned())
    }

    fn default(&self) -> String {
        self.0.to_owned()
    }

    fn description(&self) -> Description {
        Description {
            placeholder: "NAME",
            default: self.0.to_owned(),
            range: format!("`[a-z_][a-z0-9_]{{0,{}}}`, no word of SQL", BYTES - 1),
            secret: false,
            switch: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, String> {
        Identifier("leasehold").parse(&Given::One(text.into()))
    }

    #[test]
    fn names_that_need_no_quotes_are_taken() {
        let longest = "x".repeat(BYTES);
        for name in ["leasehold", "jobs_2", "_x", "a", longest.as_str()] {
            assert_eq!(parse(name).as_deref(), Ok(name));
        }
    }

    #[test]
    fn names_that_could_mean_anything_else_are_refused() {
        let too_long = "x".repeat(BYTES + 1);
        for bad in [
            "",
            "2x",
            "Jobs",
            "jobs-a",
            "jobs.a",
            "a b",
            "a\"b",
            "a';drop",
            "größe",
            "user",
            "select",
            "pg_jobs",
            "public",
            "information_schema",
            too_long.as_str(),
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
