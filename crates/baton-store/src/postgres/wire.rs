//! Conversion of values to and from PostgreSQL's binary format.

use std::error::Error;

use baton_core::StoreError;
use bytes::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::fault::PostgresFault;
use crate::value::{Row, SqlValue};

type Encoded = Result<IsNull, Box<dyn Error + Sync + Send>>;

/// PostgreSQL infers the type of each parameter; a value is encoded as the type requested.
impl ToSql for SqlValue {
    fn to_sql(&self, wanted: &Type, out: &mut BytesMut) -> Encoded {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(int) => number(*int, wanted, out),
            Self::Text(text) => text.as_str().to_sql_checked(wanted, out),
            Self::StaticText(word) => word.to_sql_checked(wanted, out),
            Self::Blob(bytes) if *wanted == Type::UUID => uuid(bytes, out),
            Self::Blob(bytes) => bytes.as_slice().to_sql_checked(wanted, out),
            Self::SharedBlob(bytes) => (&**bytes).to_sql_checked(wanted, out),
            Self::Id(id) if *wanted == Type::UUID => uuid(id.as_bytes(), out),
            Self::Id(id) => id.as_bytes().as_slice().to_sql_checked(wanted, out),
            Self::Ids(ids) => {
                ids.iter().copied().map(Self::from).collect::<Vec<_>>().to_sql_checked(wanted, out)
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

#[expect(clippy::unnecessary_wraps, reason = "the form of all of these")]
fn uuid(bytes: &[u8], out: &mut BytesMut) -> Encoded {
    out.extend_from_slice(bytes);
    Ok(IsNull::No)
}

fn number(int: i64, wanted: &Type, out: &mut BytesMut) -> Encoded {
    match *wanted {
        Type::INT4 => i32::try_from(int)?.to_sql(wanted, out),
        Type::INT2 => i16::try_from(int)?.to_sql(wanted, out),
        Type::BOOL => (int != 0).to_sql(wanted, out),
        _ => int.to_sql_checked(wanted, out),
    }
}

pub(super) fn row(found: &tokio_postgres::Row) -> Result<Row, PostgresFault> {
    (0..found.len()).map(|at| value(found, at)).collect::<Result<_, _>>().map(Row)
}

fn value(found: &tokio_postgres::Row, at: usize) -> Result<SqlValue, PostgresFault> {
    let column = &found.columns()[at];
    match *column.type_() {
        Type::INT8 => cell::<i64>(found, at, SqlValue::Int),
        Type::INT4 => cell::<i32>(found, at, |int| SqlValue::Int(int.into())),
        Type::INT2 => cell::<i16>(found, at, |int| SqlValue::Int(int.into())),
        Type::BOOL => cell::<bool>(found, at, SqlValue::from),
        Type::TEXT | Type::VARCHAR | Type::NAME | Type::UNKNOWN => cell::<String>(found, at, SqlValue::Text),
        Type::BYTEA => cell::<Vec<u8>>(found, at, SqlValue::Blob),
        Type::UUID => cell::<Id>(found, at, |id| SqlValue::Blob(id.0)),
        ref other => {
            let name = column.name();
            Err(StoreError::Failed(format!("column {name} has the type {other}, which is not known")).into())
        }
    }
}

/// The bytes of a UUID.
struct Id(Vec<u8>);

impl<'r> FromSql<'r> for Id {
    fn from_sql(_: &Type, raw: &'r [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(raw.to_vec()))
    }

    fn accepts(found: &Type) -> bool {
        *found == Type::UUID
    }
}

fn cell<'r, T: FromSql<'r>>(
    found: &'r tokio_postgres::Row,
    at: usize,
    value: impl FnOnce(T) -> SqlValue,
) -> Result<SqlValue, PostgresFault> {
    Ok(found.try_get::<_, Option<T>>(at)?.map_or(SqlValue::Null, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_the_width_that_is_asked_for() {
        let width = |wanted: Type| {
            let mut out = BytesMut::new();
            SqlValue::Int(7).to_sql(&wanted, &mut out).map(|_| out.len()).ok()
        };
        assert_eq!(width(Type::INT8), Some(8));
        assert_eq!(width(Type::INT4), Some(4));
        assert_eq!(width(Type::BOOL), Some(1));
        assert_eq!(width(Type::TEXT), None, "a number is no text");
        assert!(SqlValue::Int(i64::MAX).to_sql(&Type::INT4, &mut BytesMut::new()).is_err());
    }
}
