//! Pagination.

use crate::choices;

choices! {
    /// The direction of a list that is sorted by time.
    #[derive(Default)]
    pub enum Order {
        /// Oldest first.
        #[default]
        Asc = "asc",
        /// Newest first.
        Desc = "desc",
    }
}

/// A requested page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    pub limit: u32,
    /// The `next_cursor` of the previous page; valid only for the same list in the same order.
    pub cursor: Option<String>,
}

impl PageRequest {
    pub const DEFAULT_LIMIT: u32 = 50;
    pub const MAX_LIMIT: u32 = 200;

    pub fn first(limit: u32) -> Self {
        Self { limit, cursor: None }
    }

    /// The limit, clamped to 1..=[`Self::MAX_LIMIT`].
    pub fn size(&self) -> u32 {
        self.limit.clamp(1, Self::MAX_LIMIT)
    }
}

impl Default for PageRequest {
    fn default() -> Self {
        Self::first(Self::DEFAULT_LIMIT)
    }
}

/// One page, and the cursor of the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub data: Vec<T>,
    pub next_cursor: Option<String>,
}
