//! Lists in pieces: a cursor says after which row the next piece begins, so that pieces stay right while rows come and go.

use std::fmt::Display;

use baton_core::StoreError;
use baton_core::store::{Page, PageRequest};

/// The row after which a piece begins, in a list that is sorted by time and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) at: i64,
    pub(crate) id: String,
}

impl Place {
    /// For lists with the newest first: before everything there is.
    const NEWEST: Self = Self { at: i64::MAX, id: String::new() };
    /// For lists with the oldest first.
    const OLDEST: Self = Self { at: i64::MIN, id: String::new() };

    pub(crate) fn from_newest(page: &PageRequest) -> Result<Self, StoreError> {
        page.cursor.as_deref().map_or(Ok(Self::NEWEST), Self::parse)
    }

    pub(crate) fn from_oldest(page: &PageRequest) -> Result<Self, StoreError> {
        page.cursor.as_deref().map_or(Ok(Self::OLDEST), Self::parse)
    }

    fn parse(cursor: &str) -> Result<Self, StoreError> {
        let parts = cursor.split_once('.').and_then(|(at, id)| Some((at.parse().ok()?, id)));
        let is_id = |id: &str| id.len() <= 36 && id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        match parts {
            Some((at, id)) if is_id(id) => Ok(Self { at, id: id.to_owned() }),
            _ => Err(StoreError::InvalidCursor),
        }
    }

    /// The cursor of whatever comes after a row.
    pub(crate) fn cursor(at: i64, id: impl Display) -> String {
        format!("{at}.{id}")
    }
}

/// The number after which a piece begins, in a list that is numbered.
pub(crate) fn number(page: &PageRequest) -> Result<u64, StoreError> {
    page.cursor.as_deref().map_or(Ok(0), |cursor| cursor.parse().map_err(|_| StoreError::InvalidCursor))
}

/// How many rows to ask for: one more than wanted tells whether there are more.
pub(crate) fn with_next(page: &PageRequest) -> u32 {
    page.size() + 1
}

/// Makes a piece of the rows that [`with_next`] asked for.
pub(crate) fn cut<T>(mut rows: Vec<T>, size: u32, cursor: impl FnOnce(&T) -> String) -> Page<T> {
    let size = size as usize;
    let has_next = rows.len() > size;
    rows.truncate(size);
    let next_cursor = if has_next { rows.last().map(cursor) } else { None };
    Page { data: rows, next_cursor }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_back_and_nothing_else_is() {
        let after =
            |cursor: &str| Place::from_newest(&PageRequest { limit: 1, cursor: Some(cursor.to_owned()) });
        let place = Place { at: 17, id: "0a-1".to_owned() };
        assert_eq!(after(&Place::cursor(17, "0a-1")), Ok(place));
        for bad in ["", "17", "x.0a", "17.' OR 1", "17.\u{0}", "99999999999999999999.0a"] {
            assert_eq!(after(bad), Err(StoreError::InvalidCursor), "{bad}");
        }
        assert!(number(&PageRequest { limit: 1, cursor: Some("-1".to_owned()) }).is_err());
    }

    #[test]
    fn the_last_piece_has_no_cursor() {
        let cursor = |n: &i32| n.to_string();
        assert_eq!(cut(vec![1, 2, 3], 2, cursor).next_cursor.as_deref(), Some("2"));
        assert_eq!(cut(vec![1, 2], 2, cursor).next_cursor, None);
    }
}
