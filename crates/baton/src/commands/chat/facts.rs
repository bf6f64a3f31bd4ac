//! What commands of the chat answer.

use baton_core::ledger::{LedgerRow, by_agent};
use baton_core::store::{PageRequest, RunQuery};
use baton_core::{StoreError, Usage};

use super::screen::Show;
use super::standing::ChatStatus;
use super::talk::Chat;
use crate::commands;
use crate::report::figures::{cost, count, tokens};
use crate::report::table::{Column, Table};

impl Chat {
    /// Those that are offered to people.
    pub(super) fn agents(&self, standing: &ChatStatus) -> String {
        let mut table = Table::new([
            Column::Text(" "),
            Column::Text("agent"),
            Column::Text("name"),
            Column::Text("what for"),
        ]);
        // Also those that were created meanwhile.
        let agents = self.engine.agents(&commands::tenant());
        for agent in agents.values().filter(|agent| !agent.badge.hidden) {
            let is_answering =
                standing.is_held_by(&agent.name) || (standing.holder.is_none() && self.entry.is(&agent.name));
            table.add([
                if is_answering { "●" } else { "" }.to_owned(),
                agent.name.to_string(),
                agent.display_name.clone(),
                agent.description.clone(),
            ]);
        }
        table.print()
    }

    /// What the conversation has taken so far, by agent.
    pub(super) async fn usage(&self) -> Show {
        match self.ledger().await {
            Ok((runs, rows)) => Show::Result(usage_table(runs, &rows)),
            // A conversation begins with its first message.
            Err(StoreError::ThreadNotFound) => Show::Told("nothing was asked yet".to_owned()),
            Err(error) => Show::Told(format!("error: {error}")),
        }
    }

    async fn ledger(&self) -> Result<(u64, Vec<LedgerRow>), StoreError> {
        self.store.thread(self.thread, None).await?;
        let (mut runs, mut rows) = (0, Vec::new());
        let mut page = PageRequest::first(PageRequest::MAX_LIMIT);
        loop {
            let query = RunQuery { thread_id: Some(self.thread), ..RunQuery::default() };
            let found = self.store.runs(query, page).await?;
            for run in &found.data {
                runs += 1;
                rows.extend(self.store.ledger(run.run_id).await?);
            }
            let Some(cursor) = found.next_cursor else { return Ok((runs, rows)) };
            page = PageRequest { limit: PageRequest::MAX_LIMIT, cursor: Some(cursor) };
        }
    }
}

fn usage_table(runs: u64, rows: &[LedgerRow]) -> String {
    let mut table = Table::new([Column::Text("agent"), Column::Number("tokens"), Column::Number("cost")]);
    let mut total = Usage::default();
    for line in by_agent(rows) {
        table.add([line.agent.to_string(), tokens(&line.usage), cost(line.usage.cost)]);
        total += line.usage;
    }
    table.add([count(runs, "run"), tokens(&total), cost(total.cost)]);
    table.print()
}
