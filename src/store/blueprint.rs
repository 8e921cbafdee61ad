//! What the migrations make, read from their texts: so that no list of tables and indexes has to be kept beside them.

use super::engine::Migration;

/// Tables, their storage settings, and indexes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Blueprint {
    pub(super) tables: Vec<PlannedTable>,
    pub(super) indexes: Vec<PlannedIndex>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlannedTable {
    pub(super) name: String,
    /// `fillfactor=70`, as the catalog has it.
    pub(super) options: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlannedIndex {
    pub(super) name: String,
    /// The statement that makes it.
    pub(super) statement: String,
}

impl Blueprint {
    /// What `migrations` make together.
    pub(super) fn of<'a>(migrations: impl IntoIterator<Item = &'a Migration>) -> Self {
        let mut made = Self::default();
        for migration in migrations {
            for statement in statements(migration.sql) {
                made.add(&statement);
            }
        }
        made
    }

    fn add(&mut self, statement: &str) {
        let words: Vec<&str> = statement.split_whitespace().collect();
        match words.as_slice() {
            ["create", "table", name, ..] => {
                self.tables.push(PlannedTable { name: bare(name), options: options(statement, ") with (") });
            }
            ["create", "index", name, "on", ..] | ["create", "unique", "index", name, "on", ..] => {
                self.indexes.push(PlannedIndex { name: bare(name), statement: words.join(" ") });
            }
            ["alter", "table", name, "set", ..] => {
                let name = bare(name);
                if let Some(table) = self.tables.iter_mut().find(|table| table.name == name) {
                    for option in options(statement, " set (") {
                        table.options.retain(|old| key(old) != key(&option));
                        table.options.push(option);
                    }
                }
            }
            ["drop", "index", name] => {
                let name = bare(name);
                self.indexes.retain(|index| index.name != name);
            }
            _ => {}
        }
    }
}

/// The name of a storage setting.
fn key(option: &str) -> &str {
    option.split_once('=').map_or(option, |(key, _)| key)
}

/// Without its schema and what follows it.
fn bare(name: &str) -> String {
    let name = name.split_once('.').map_or(name, |(_, name)| name);
    name.trim_end_matches([';', '(']).to_owned()
}

/// The settings between `before` and the parenthesis that closes it.
fn options(statement: &str, before: &str) -> Vec<String> {
    let Some((_, list)) = statement.split_once(before) else { return Vec::new() };
    let list = list.split_once(')').map_or(list, |(list, _)| list);
    list.split(',')
        .filter_map(|option| option.split_once('='))
        .map(|(key, value)| format!("{}={}", key.trim(), value.trim()))
        .collect()
}

/// The statements of a text without comments, each on one line. Bodies of functions fall to pieces, none of which looks like
/// a statement that matters here.
fn statements(text: &str) -> Vec<String> {
    let code: Vec<&str> = text.lines().map(|line| line.split("--").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    code.split(';').map(|statement| statement.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_migrations_change_what_earlier_ones_made() {
        let migration = |number, sql| Migration { number, name: "x", sql };
        let made = Blueprint::of(&[
            migration(
                1,
                "create table leasehold.a (\n b int -- c;\n) with (fillfactor = 70, x = on);\ncreate index i on leasehold.a (b);",
            ),
            migration(2, "alter table leasehold.a set (fillfactor = 80, y = 1);\ndrop index leasehold.i;"),
            migration(3, "create unique index j on leasehold.a (b);"),
        ]);
        assert_eq!(made.tables[0].options, ["x=on", "fillfactor=80", "y=1"]);
        assert_eq!(made.indexes.len(), 1);
        assert_eq!(made.indexes[0].name, "j");
    }
}
