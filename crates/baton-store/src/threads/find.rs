//! Search for threads by title.

use baton_core::store::{Page, PageRequest, Thread};
use baton_core::{StoreError, UserId};

use super::{columns, cut};
use crate::page::{self, PageCursor};
use crate::tx::Tx;
use crate::value::params;

const ALL: &str = concat!(
    "SELECT ",
    columns!(),
    "
    FROM threads AS t JOIN thread_work AS w ON w.tenant = $1 AND w.thread_id = t.thread_id
    WHERE t.tenant = $1 AND (t.updated_at, t.thread_id) < ($2, $3) AND lower(t.title) LIKE lower($5) ESCAPE '!'
    ORDER BY t.updated_at DESC, t.thread_id DESC
    LIMIT $4"
);

const OF_USER: &str = concat!(
    "SELECT ",
    columns!(),
    "
    FROM threads AS t JOIN thread_work AS w ON w.tenant = $1 AND w.thread_id = t.thread_id
    WHERE t.tenant = $1 AND t.user_id = $6 AND (t.updated_at, t.thread_id) < ($2, $3)
        AND lower(t.title) LIKE lower($5) ESCAPE '!'
    ORDER BY t.updated_at DESC, t.thread_id DESC
    LIMIT $4"
);

/// A `LIKE` pattern for titles that contain the text, with wildcards escaped. The database lower-cases both sides, so a text
/// always matches itself.
pub(super) fn pattern(text: &str) -> String {
    let escaped = text.replace('!', "!!").replace('%', "!%").replace('_', "!_");
    format!("%{escaped}%")
}

pub(super) async fn list(
    tx: &Tx<'_>,
    user: Option<&UserId>,
    pattern: &str,
    page: &PageRequest,
    after: &PageCursor,
) -> Result<Page<Thread>, StoreError> {
    let (at, id, limit) = (after.at, after.id, page::with_next(page));
    let rows = match user {
        Some(user) => tx.query(OF_USER, params![at, id, limit, pattern, user]).await?,
        None => tx.query(ALL, params![at, id, limit, pattern]).await?,
    };
    cut(&rows, page)
}

#[cfg(test)]
mod tests {
    use super::super::history::tests::plan;
    use super::*;

    #[test]
    fn a_search_goes_along_the_index_of_the_list() {
        for (sql, index) in [(ALL, "threads_by_use"), (OF_USER, "threads_of_user")] {
            let plan = plan(sql);
            assert!(plan[0].starts_with(&format!("SEARCH t USING INDEX {index} ")), "{plan:?}");
            let by_id = "SEARCH w USING INDEX sqlite_autoindex_thread_work_1 (tenant=? AND thread_id=?)";
            assert_eq!(plan[1..], [by_id]);
        }
    }

    #[test]
    fn wildcards_of_the_text_are_escaped() {
        assert_eq!(pattern("50% a_b!"), "%50!% a!_b!!%");
    }
}
