//! How values of the model travel to the server and back.

use sqlx::{
    Column, Decode, Encode, Postgres, Row, Type, ValueRef,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgHasArrayType, PgRow, PgTypeInfo, PgValueFormat, PgValueRef},
    types::time::OffsetDateTime,
};

use crate::{
    model::{LeaseId, Timestamp},
    store::error::EngineError,
};

/// Microseconds from 1970, where the model counts from, to 2000, where the server does.
const EPOCH: i64 = 946_684_800_000_000;

/// A `timestamptz`, exact to the microsecond: as integers, since a detour by calendar dates costs and can fail.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment(pub(super) Timestamp);

impl Type<Postgres> for Moment {
    fn type_info() -> PgTypeInfo {
        <OffsetDateTime as Type<Postgres>>::type_info()
    }
}

impl PgHasArrayType for Moment {
    fn array_type_info() -> PgTypeInfo {
        OffsetDateTime::array_type_info()
    }
}

impl Encode<'_, Postgres> for Moment {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        buffer.extend(&self.0.0.saturating_sub(EPOCH).to_be_bytes());
        Ok(IsNull::No)
    }
}

impl<'r> Decode<'r, Postgres> for Moment {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        if value.format() != PgValueFormat::Binary || value.is_null() {
            return Err("no instant in binary form".into());
        }
        let since_2000 = i64::from_be_bytes(value.as_bytes()?.try_into()?);
        Ok(Self(Timestamp(since_2000.saturating_add(EPOCH))))
    }
}

/// A lease as `uuid`.
pub(super) fn uuid(lease: LeaseId) -> sqlx::types::Uuid {
    sqlx::types::Uuid::from_u128(lease.0)
}

/// A column of a row; what cannot be decoded names `act` and column.
pub(super) fn get<'r, T>(row: &'r PgRow, act: &str, column: &str) -> Result<T, EngineError>
where
    T: Decode<'r, Postgres> + Type<Postgres>,
{
    // The error is left out: it may show the value.
    row.try_get(column).map_err(|_| EngineError::Bug(format!("{act}: column {column} cannot be decoded")))
}

/// The columns of a row, one after the other: for rows that come by the thousand, where finding each column by its name and
/// comparing its type costs more than reading it. The statement lists them in the order in which they are taken.
pub(super) struct InOrder<'r> {
    row: &'r PgRow,
    act: &'static str,
    next: usize,
}

impl<'r> InOrder<'r> {
    /// From the first column on; errors name `act`.
    pub(super) fn of(row: &'r PgRow, act: &'static str) -> Self {
        Self { row, act, next: 0 }
    }

    /// The next column, which is `column`.
    pub(super) fn take<T: Decode<'r, Postgres>>(&mut self, column: &str) -> Result<T, EngineError> {
        debug_assert_eq!(self.row.column(self.next).name(), column, "{}: the statement has another order", self.act);
        let value = self.row.try_get_unchecked(self.next);
        self.next += 1;
        // The error is left out: it may show the value.
        value.map_err(|_| EngineError::Bug(format!("{}: column {column} cannot be decoded", self.act)))
    }
}

/// A number that the schema keeps within the narrower type.
pub(super) fn narrow<N, W>(wide: W, act: &str, column: &str) -> Result<N, EngineError>
where
    N: TryFrom<W>,
{
    N::try_from(wide).map_err(|_| EngineError::Bug(format!("{act}: column {column} is out of range")))
}

/// An array of which each item answers one of those asked.
pub(super) fn one_each<T>(items: Vec<T>, asked: usize, act: &str, column: &str) -> Result<Vec<T>, EngineError> {
    if items.len() == asked {
        Ok(items)
    } else {
        Err(EngineError::Bug(format!("{act}: {} of {asked} items in {column}", items.len())))
    }
}
