//! Which database.

use std::path::PathBuf;

use secrecy::SecretString;

use super::{Description, Given, Kind};

/// Where jobs are kept.
#[derive(Debug, Clone)]
pub enum Database {
    /// The embedded database in the data directory.
    Embedded,
    /// The embedded database in a file of its own.
    File(PathBuf),
    /// A `PostgreSQL` server. The URL holds a password.
    Postgres(SecretString),
    /// A `MySQL` or `MariaDB` server. The URL holds a password.
    Mysql(SecretString),
}

/// The URL of a database: `postgres://…`, `postgresql://…`, `mysql://…`, `mariadb://…` or `sqlite://PATH`. Without one, the
/// embedded database in the data directory.
#[derive(Debug, Clone, Copy)]
pub struct DatabaseUrl;

const RULE: &str =
    "must begin with postgres://, postgresql://, mysql://, mariadb:// or sqlite:// and name a server or a file";

impl Kind for DatabaseUrl {
    type Value = Database;

    fn parse(&self, given: &Given) -> Result<Database, String> {
        let text = given.single()?;
        let (scheme, rest) = text.split_once("://").ok_or(RULE)?;
        match scheme {
            _ if rest.is_empty() || text.contains('\0') => Err(RULE.into()),
            "postgres" | "postgresql" => Ok(Database::Postgres(text.into())),
            "mysql" | "mariadb" => Ok(Database::Mysql(text.into())),
            "sqlite" if rest.contains('?') => Err("must be sqlite://PATH without parameters".into()),
            "sqlite" => Ok(Database::File(rest.into())),
            _ => Err(RULE.into()),
        }
    }

    fn default(&self) -> Database {
        Database::Embedded
    }

    fn description(&self) -> Description {
        Description {
            placeholder: "URL",
            default: String::new(),
            range: "`postgres://…`, `postgresql://…`, `mysql://…`, `mariadb://…`, `sqlite://PATH`".into(),
            secret: true,
            switch: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Database, String> {
        DatabaseUrl.parse(&Given::One(text.into()))
    }

    #[test]
    fn each_scheme_leads_to_its_engine() {
        assert!(matches!(parse("postgres://u:secret@db/app"), Ok(Database::Postgres(_))));
        assert!(matches!(parse("postgresql:///app?host=/run/postgresql"), Ok(Database::Postgres(_))));
        assert!(matches!(parse("mysql://u:secret@db/app"), Ok(Database::Mysql(_))));
        assert!(matches!(parse("mariadb://u:secret@db/app"), Ok(Database::Mysql(_))));
        assert!(matches!(parse("sqlite:///var/lib/jobs.db"), Ok(Database::File(path)) if path == *"/var/lib/jobs.db"));
        assert!(matches!(parse("sqlite://jobs.db"), Ok(Database::File(path)) if path == *"jobs.db"));
    }

    #[test]
    fn a_refused_url_is_never_shown() {
        for bad in ["oracle://u:hunter2@db/app", "postgres:hunter2", "hunter2", "postgres://", "sqlite://x?hunter2"] {
            let rule = parse(bad).expect_err(bad);
            assert!(!rule.contains("hunter2"), "{rule}");
        }
    }
}
