//! How values travel to the server and back.

use serde::{Serialize, Serializer};
use sqlx::{Decode, MySql, Row as _, Type, mysql::MySqlRow};

use crate::{
    model::{LeaseId, Timestamp},
    store::error::EngineError,
};

/// A column of a row.
pub(super) fn column<'r, T>(row: &'r MySqlRow, name: &str) -> Result<T, EngineError>
where
    T: Decode<'r, MySql> + Type<MySql>,
{
    // The error is left out: it may show the value.
    row.try_get(name).map_err(|_| EngineError::Bug(format!("column {name} cannot be decoded")))
}

/// An integer that the schema keeps within the narrower type.
pub(super) fn narrow<T: TryFrom<i64>>(row: &MySqlRow, name: &str) -> Result<T, EngineError> {
    T::try_from(column::<i64>(row, name)?).map_err(|_| EngineError::Bug(format!("column {name} is out of range")))
}

/// An instant.
pub(super) fn moment(row: &MySqlRow, name: &str) -> Result<Timestamp, EngineError> {
    column(row, name).map(Timestamp)
}

/// A lease's bits.
pub(super) fn lease(row: &MySqlRow, name: &str) -> Result<LeaseId, EngineError> {
    let bytes: Vec<u8> = column(row, name)?;
    let bits = <[u8; 16]>::try_from(bytes).map_err(|_| EngineError::Bug(format!("column {name} is no lease")))?;
    Ok(LeaseId(u128::from_be_bytes(bits)))
}

/// A text that is stored as bytes, since no type of the server's compares texts byte for byte.
pub(super) fn name(row: &MySqlRow, column_name: &str) -> Result<Option<String>, EngineError> {
    let bytes: Option<Vec<u8>> = column(row, column_name)?;
    let text = bytes.map(String::from_utf8).transpose();
    text.map_err(|_| EngineError::Bug(format!("column {column_name} is no text")))
}

/// The place in a list of `length` items that a row answers, from its column `n`.
pub(super) fn place(row: &MySqlRow, length: usize) -> Result<usize, EngineError> {
    let place: usize = narrow(row, "n")?;
    if place < length { Ok(place) } else { Err(EngineError::Bug(format!("answer {place} to {length} questions"))) }
}

/// A list as one value, for `json_table`: one text of SQL and one trip, however long it is.
pub(super) fn list<T: Serialize + ?Sized>(items: &T) -> Result<String, EngineError> {
    serde_json::to_string(items).map_err(|_| EngineError::Bug("a list that is no JSON".into()))
}

/// What a list may lack. None travels as an empty list, whose first element is no value in any path: early servers
/// of MySQL 8.0 read JSON's `null` as the text `null`, and refuse it for a number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Maybe<T>(pub(super) Option<T>);

impl<T: Serialize> Serialize for Maybe<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_slice().serialize(serializer)
    }
}

/// A number of items as the server counts them.
pub(super) fn count(items: usize) -> i64 {
    i64::try_from(items).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_list_lacks_is_no_null_in_it() {
        assert_eq!(list(&[(1, Maybe(Some("x"))), (2, Maybe(None))]).expect("JSON"), r#"[[1,["x"]],[2,[]]]"#);
    }
}
