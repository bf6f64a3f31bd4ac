//! Keyset pagination: a cursor names the last row of a page, so that pages stay correct while rows are inserted and deleted.

use std::fmt::Display;

use baton_core::StoreError;
use baton_core::store::{Order, Page, PageRequest};
use uuid::Uuid;

/// The row after which a page begins, in a list sorted by time and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageCursor {
    pub(crate) at: i64,
    pub(crate) id: Uuid,
}

impl PageCursor {
    /// Start of a list with the newest first.
    const NEWEST: Self = Self { at: i64::MAX, id: Uuid::max() };
    /// Start of a list with the oldest first.
    const OLDEST: Self = Self { at: i64::MIN, id: Uuid::nil() };

    pub(crate) fn from_newest(page: &PageRequest) -> Result<Self, StoreError> {
        page.cursor.as_deref().map_or(Ok(Self::NEWEST), Self::parse)
    }

    /// Parses the cursor of a list that can be read in either order.
    pub(crate) fn in_order(page: &PageRequest, order: Order) -> Result<Self, StoreError> {
        let first = match order {
            Order::Asc => Self::OLDEST,
            Order::Desc => Self::NEWEST,
        };
        cursor_in(page, order)?.map_or(Ok(first), Self::parse)
    }

    fn parse(cursor: &str) -> Result<Self, StoreError> {
        let place = cursor
            .split_once('.')
            .and_then(|(at, id)| Some(Self { at: at.parse().ok()?, id: Uuid::try_parse(id).ok()? }));
        place.ok_or(StoreError::InvalidCursor)
    }

    /// The cursor that continues after a row.
    pub(crate) fn cursor(at: i64, id: impl Display) -> String {
        format!("{at}.{id}")
    }
}

/// Prefix of the cursors of descending lists. Those of ascending lists begin with a number, so a cursor is only valid in its
/// own order.
const DESCENDING: &str = "desc.";

/// Marks a cursor with the order of its list.
pub(crate) fn ordered(order: Order, cursor: String) -> String {
    match order {
        Order::Asc => cursor,
        Order::Desc => format!("{DESCENDING}{cursor}"),
    }
}

/// Reverses [`ordered`].
pub(crate) fn cursor_in(page: &PageRequest, order: Order) -> Result<Option<&str>, StoreError> {
    match (page.cursor.as_deref(), order) {
        (Some(cursor), Order::Desc) => {
            cursor.strip_prefix(DESCENDING).map(Some).ok_or(StoreError::InvalidCursor)
        }
        (cursor, _) => Ok(cursor),
    }
}

/// A statement in both orders.
pub(crate) struct Ordered {
    pub(crate) asc: &'static str,
    pub(crate) desc: &'static str,
}

impl Ordered {
    pub(crate) fn sql(&self, order: Order) -> &'static str {
        match order {
            Order::Asc => self.asc,
            Order::Desc => self.desc,
        }
    }
}

/// One row more than the page size, to find out whether there is a next page.
pub(crate) fn with_next(page: &PageRequest) -> u32 {
    page.size() + 1
}

/// Builds a page from the rows that [`with_next`] requested.
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
        let after = |cursor: &str| {
            PageCursor::from_newest(&PageRequest { limit: 1, cursor: Some(cursor.to_owned()) })
        };
        let id = Uuid::from_u128(1);
        assert_eq!(after(&PageCursor::cursor(17, id)), Ok(PageCursor { at: 17, id }));
        let (wrong_time, too_late) = (format!("x.{id}"), format!("99999999999999999999.{id}"));
        for bad in ["", "17", "17.0a", "17.' OR 1", "17.\u{0}", &wrong_time, &too_late] {
            assert_eq!(after(bad), Err(StoreError::InvalidCursor), "{bad}");
        }
    }

    #[test]
    fn a_cursor_of_one_order_is_invalid_in_the_other() {
        let place = PageCursor { at: 17, id: Uuid::from_u128(1) };
        for (order, other) in [(Order::Asc, Order::Desc), (Order::Desc, Order::Asc)] {
            let at = |cursor| PageRequest { limit: 1, cursor: Some(ordered(order, cursor)) };
            let by_time = at(PageCursor::cursor(17, place.id));
            assert_eq!(PageCursor::in_order(&by_time, order), Ok(place.clone()));
            assert_eq!(PageCursor::in_order(&by_time, other), Err(StoreError::InvalidCursor));
            assert_eq!(cursor_in(&by_time, order), Ok(Some(&*PageCursor::cursor(17, place.id))));
        }
        assert_eq!(cursor_in(&PageRequest::default(), Order::Desc), Ok(None));
    }

    #[test]
    fn the_last_piece_has_no_cursor() {
        let cursor = |n: &i32| n.to_string();
        assert_eq!(cut(vec![1, 2, 3], 2, cursor).next_cursor.as_deref(), Some("2"));
        assert_eq!(cut(vec![1, 2], 2, cursor).next_cursor, None);
    }
}
