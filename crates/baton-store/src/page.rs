//! Lists in pieces: a cursor says after which row the next piece begins, so that pieces stay right while rows come and go.

use std::fmt::Display;

use baton_core::StoreError;
use baton_core::store::{Order, Page, PageRequest};
use uuid::Uuid;

/// The row after which a piece begins, in a list that is sorted by time and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) at: i64,
    pub(crate) id: Uuid,
}

impl Place {
    /// For lists with the newest first: before everything there is.
    const NEWEST: Self = Self { at: i64::MAX, id: Uuid::max() };
    /// For lists with the oldest first.
    const OLDEST: Self = Self { at: i64::MIN, id: Uuid::nil() };

    pub(crate) fn from_newest(page: &PageRequest) -> Result<Self, StoreError> {
        page.cursor.as_deref().map_or(Ok(Self::NEWEST), Self::parse)
    }

    /// For lists that are read in either order.
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

    /// The cursor of whatever comes after a row.
    pub(crate) fn cursor(at: i64, id: impl Display) -> String {
        format!("{at}.{id}")
    }
}

/// What cursors of descending lists begin with. Those of ascending lists begin with a number, so neither can be used for the other.
const DESCENDING: &str = "desc.";

/// The cursor of a list that is read in either order.
pub(crate) fn ordered(order: Order, cursor: String) -> String {
    match order {
        Order::Asc => cursor,
        Order::Desc => format!("{DESCENDING}{cursor}"),
    }
}

/// What was given to [`ordered`].
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
        let id = Uuid::from_u128(1);
        assert_eq!(after(&Place::cursor(17, id)), Ok(Place { at: 17, id }));
        let (wrong_time, too_late) = (format!("x.{id}"), format!("99999999999999999999.{id}"));
        for bad in ["", "17", "17.0a", "17.' OR 1", "17.\u{0}", &wrong_time, &too_late] {
            assert_eq!(after(bad), Err(StoreError::InvalidCursor), "{bad}");
        }
    }

    #[test]
    fn a_cursor_of_one_order_is_invalid_in_the_other() {
        let place = Place { at: 17, id: Uuid::from_u128(1) };
        for (order, other) in [(Order::Asc, Order::Desc), (Order::Desc, Order::Asc)] {
            let at = |cursor| PageRequest { limit: 1, cursor: Some(ordered(order, cursor)) };
            let by_time = at(Place::cursor(17, place.id));
            assert_eq!(Place::in_order(&by_time, order), Ok(place.clone()));
            assert_eq!(Place::in_order(&by_time, other), Err(StoreError::InvalidCursor));
            assert_eq!(cursor_in(&by_time, order), Ok(Some(&*Place::cursor(17, place.id))));
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
