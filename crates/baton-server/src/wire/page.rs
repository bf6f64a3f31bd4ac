//! Lists in pieces.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_core::StoreError;
use baton_core::store::{Page, PageRequest};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::problem::ApiResult;

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

/// One page of what is sorted by name and kept in no store. The cursor is the last name, so a change between two pages does no harm.
pub fn cut<T>(
    all: impl Iterator<Item = T>,
    name: impl Fn(&T) -> &str,
    is_name: impl Fn(&str) -> bool,
    request: &PageRequest,
) -> ApiResult<Page<T>> {
    let decoded = |cursor: &str| {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).filter(|text| is_name(text));
        text.ok_or(StoreError::InvalidCursor)
    };
    let after = request.cursor.as_deref().map(decoded).transpose()?;
    let size = request.size() as usize;
    let is_after = |one: &T| after.as_deref().is_none_or(|after| name(one) > after);
    let mut data: Vec<T> = all.filter(is_after).take(size + 1).collect();
    let is_more = data.len() > size;
    data.truncate(size);
    let next_cursor = data.last().filter(|_| is_more).map(|last| URL_SAFE_NO_PAD.encode(name(last)));
    Ok(Page { data, next_cursor })
}
