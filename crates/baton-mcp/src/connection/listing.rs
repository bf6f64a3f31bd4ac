//! Which tools a server offers.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rmcp::ServiceError;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool};
use serde_json::Value;

use super::failure::McpFailure;
use super::{ListedTools, McpConnection};
use crate::servers::McpSettings;
use crate::tool::ToolOffer;

/// A server that goes on for longer is broken, or means harm.
const MAX_PAGES: usize = 100;
const MAX_TOOLS: usize = 2_000;

/// One answer to `tools/list`.
struct ToolPage {
    tools: Vec<Tool>,
    next: Option<String>,
}

impl McpConnection {
    /// The tools, listed again only after the server said that they changed.
    pub async fn offers(
        &self,
        settings: &McpSettings,
        is_trusted: bool,
    ) -> Result<Arc<[Arc<ToolOffer>]>, McpFailure> {
        let mut listed = self.listed.lock().await;
        let changes = self.changes.load(Ordering::Acquire);
        if let Some(listed) = listed.as_ref().filter(|listed| listed.changes == changes) {
            return Ok(Arc::clone(&listed.offers));
        }
        let limit = settings.start_timeout;
        let tools = match tokio::time::timeout(limit.get(), self.all_tools()).await {
            Ok(Ok(tools)) => tools,
            Ok(Err(error)) => return Err(self.judge("*", error).await),
            Err(_) => return Err(McpFailure::Call(baton_core::ToolError::Timeout(limit))),
        };
        let mut names = HashSet::new();
        let offers: Arc<[_]> = tools
            .iter()
            .filter(|tool| names.insert(tool.name.clone()))
            .filter_map(|tool| ToolOffer::new(&self.name, tool, settings.call_timeout, is_trusted))
            .map(Arc::new)
            .collect();
        *listed = Some(ListedTools { changes, offers: Arc::clone(&offers) });
        Ok(offers)
    }

    async fn all_tools(&self) -> Result<Vec<Tool>, ServiceError> {
        // A server without tools may answer the question with an error.
        if self.peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
            return Ok(Vec::new());
        }
        let mut tools = Vec::new();
        let mut seen = HashSet::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let page = self.page(cursor).await?;
            tools.extend(page.tools);
            cursor = page.next.filter(|next| seen.insert(next.clone()));
            if cursor.is_none() || tools.len() >= MAX_TOOLS {
                break;
            }
        }
        if cursor.is_some() || tools.len() > MAX_TOOLS {
            tracing::warn!(server = self.name, "the MCP server lists more tools than Baton reads");
            tools.truncate(MAX_TOOLS);
        }
        Ok(tools)
    }

    async fn page(&self, cursor: Option<String>) -> Result<ToolPage, ServiceError> {
        let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let request = ListToolsRequest { params, ..ListToolsRequest::default() };
        match self.peer.send_request(ClientRequest::ListToolsRequest(request)).await? {
            ServerResult::ListToolsResult(result) => {
                Ok(ToolPage { tools: result.tools, next: result.next_cursor })
            }
            // One tool that cannot be read makes the whole page unreadable for rmcp, but not for us.
            ServerResult::CustomResult(result) => {
                self.readable(&result.0).ok_or(ServiceError::UnexpectedResponse)
            }
            _ => Err(ServiceError::UnexpectedResponse),
        }
    }

    fn readable(&self, page: &Value) -> Option<ToolPage> {
        let mut tools = Vec::new();
        for tool in page.get("tools")?.as_array()? {
            match serde_json::from_value(tool.clone()) {
                Ok(tool) => tools.push(tool),
                Err(error) => {
                    let name = tool.get("name").and_then(Value::as_str);
                    tracing::warn!(server = self.name, name, %error, "left out a tool of an MCP server");
                }
            }
        }
        Some(ToolPage { tools, next: page.get("nextCursor").and_then(Value::as_str).map(str::to_owned) })
    }
}
