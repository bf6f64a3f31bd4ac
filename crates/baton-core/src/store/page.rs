//! Lists in pieces.

use crate::choices;

choices! {
    /// The direction of a list that is sorted by time.
    #[derive(Default)]
    pub enum Order {
        /// The oldest first.
        #[default]
        Asc = "asc",
        /// The newest first.
        Desc = "desc",
    }
}

/// Which piece of a list is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    pub limit: u32,
    /// As the page before gave it; valid for the same list in the same order only.
    pub cursor: Option<String>,
}

impl PageRequest {
    pub const DEFAULT_LIMIT: u32 = 50;
    pub const MAX_LIMIT: u32 = 200;

    pub fn first(limit: u32) -> Self {
        Self { limit, cursor: None }
    }

    /// At least one, never more than allowed.
    pub fn size(&self) -> u32 {
        self.limit.clamp(1, Self::MAX_LIMIT)
    }
}

impl Default for PageRequest {
    fn default() -> Self {
        Self::first(Self::DEFAULT_LIMIT)
    }
}

/// One piece, and where the next begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub data: Vec<T>,
    pub next_cursor: Option<String>,
}
