//! Lists in pieces.

use baton_core::store::{Page, PageRequest};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which piece of a list is wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Paging {
    /// How many at most.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<Limit>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// How many a page may hold. More than are given is a mistake and not a wish: a caller that gets fewer than it asked for would take
/// that for the end of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u32")]
pub struct Limit(u32);

impl TryFrom<u32> for Limit {
    type Error = String;

    fn try_from(limit: u32) -> Result<Self, String> {
        if (1..=PageRequest::MAX_LIMIT).contains(&limit) {
            return Ok(Self(limit));
        }
        Err(format!("a page has between 1 and {} entries", PageRequest::MAX_LIMIT))
    }
}

/// A piece of a list. There is more when `next_cursor` is there.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Listed<T> {
    pub data: Vec<T>,
    pub next_cursor: Option<String>,
}

impl From<Paging> for PageRequest {
    fn from(paging: Paging) -> Self {
        request(paging.limit, paging.cursor)
    }
}

/// For routes that take more than these two.
pub fn request(limit: Option<Limit>, cursor: Option<String>) -> PageRequest {
    PageRequest { limit: limit.map_or(PageRequest::DEFAULT_LIMIT, |Limit(limit)| limit), cursor }
}

impl<T> Listed<T> {
    pub fn of<U>(page: Page<U>, view: impl FnMut(U) -> T) -> Self {
        Self { data: page.data.into_iter().map(view).collect(), next_cursor: page.next_cursor }
    }

    /// A list that is always given as a whole.
    pub fn whole(data: Vec<T>) -> Self {
        Self { data, next_cursor: None }
    }
}
