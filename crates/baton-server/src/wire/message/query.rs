//! The query of a list of messages.

use baton_core::store::{MessageQuery, PageRequest};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::problem::{ApiResult, Code, Problem};
use crate::wire::page::{self, Limit};

/// Which messages are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct MessageParams {
    /// How many at most.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200, default = 50)]
    limit: Option<Limit>,
    /// Only those with a smaller `number`.
    #[param(minimum = 0)]
    before: Option<u64>,
    /// `next_cursor` of the page before, in place of `before`.
    cursor: Option<String>,
    /// Also what is left out otherwise: `internal` (what agents said to each other; needs `trace:read`), `system`, or both with a comma
    /// between them.
    #[param(pattern = "^(internal|system)(,(internal|system))*$")]
    include: Option<String>,
}

impl MessageParams {
    pub fn query(&self) -> ApiResult<MessageQuery> {
        let wrong = |name: &str, detail: &str| {
            Problem::new(Code::InvalidRequest, "the query is not what this route takes").at(name, detail)
        };
        let before = match (&self.cursor, self.before) {
            (Some(_), Some(_)) => return Err(wrong("cursor", "`before` or `cursor`, not both")),
            (Some(cursor), None) => {
                let number =
                    cursor.parse().map_err(|_| wrong("cursor", "use `next_cursor` of the page before"))?;
                Some(number)
            }
            (None, before) => before,
        };
        let PageRequest { limit, .. } = page::request(self.limit, None);
        let mut query = MessageQuery { before, ..MessageQuery::last(limit) };
        for word in self.include.iter().flat_map(|words| words.split(',')) {
            match word {
                "internal" => query.include_internal = true,
                "system" => query.include_system = true,
                _ => return Err(wrong("include", "`internal`, `system` or `internal,system`")),
            }
        }
        Ok(query)
    }
}
