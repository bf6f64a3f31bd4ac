//! Collects the results of sub-agents in the order in which they were requested.

use baton_core::{AgentName, SubAgentResult};

use crate::failure::Failure;

const NO_RESPONSES: &str = "No responses received from sub-agents.";
const ALL_FAILED: &str = "All sub-agents failed to provide responses.";

/// One slot for each requested agent.
#[derive(Debug, Default)]
pub(super) struct ResultBuffer {
    slots: Vec<Option<SubAgentResult>>,
    /// Index of the first success, if only that counts.
    winner: Option<usize>,
}

impl ResultBuffer {
    /// A buffer for `asked` agents.
    pub(super) fn new(asked: usize) -> Self {
        Self { slots: vec![None; asked], winner: None }
    }

    /// Stores the result of the agent at `at`. Ignores an index out of range.
    pub(super) fn put(&mut self, at: usize, result: SubAgentResult) {
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = Some(result);
        }
    }

    /// Declares the agent at `at` the winner, unless there is one.
    pub(super) fn set_winner(&mut self, at: usize) {
        self.winner.get_or_insert(at);
    }

    pub(super) fn has_winner(&self) -> bool {
        self.winner.is_some()
    }

    pub(super) fn asked(&self) -> usize {
        self.slots.len()
    }

    /// Results in request order. Superseded ones are replaced by an error of type `not_used`.
    pub(super) fn results(&self) -> Vec<SubAgentResult> {
        let results = self.slots.iter().enumerate().filter_map(|(at, slot)| Some((at, slot.as_ref()?)));
        results
            .map(|(at, result)| if self.is_superseded(at) { self.not_used(result) } else { result.clone() })
            .collect()
    }

    pub(super) fn succeeded(&self) -> usize {
        self.counted().filter(|result| result.success).count()
    }

    /// Failed results, without the superseded ones.
    pub(super) fn failures(&self) -> Vec<&SubAgentResult> {
        self.counted().filter(|result| !result.success).collect()
    }

    /// Number of results that were discarded, cancelled or never started because another agent won.
    pub(super) fn not_used_count(&self) -> usize {
        (0..self.slots.len()).filter(|at| self.slots[*at].is_some() && self.is_superseded(*at)).count()
    }

    /// All responses as one text.
    pub(super) fn synthesis(&self) -> String {
        synthesis(&self.results())
    }

    fn counted(&self) -> impl Iterator<Item = &SubAgentResult> {
        self.slots
            .iter()
            .enumerate()
            .filter(|(at, _)| !self.is_superseded(*at))
            .filter_map(|(_, slot)| slot.as_ref())
    }

    /// Whether another agent won and this one had not failed on its own before.
    fn is_superseded(&self, at: usize) -> bool {
        let stopped = |result: &SubAgentResult| {
            result.success
                || result.error_type.as_deref().is_none_or(|code| code == Failure::Cancelled.code())
        };
        self.winner.is_some_and(|winner| winner != at) && self.slots[at].as_ref().is_some_and(stopped)
    }

    fn not_used(&self, result: &SubAgentResult) -> SubAgentResult {
        let winner = self.winner.and_then(|at| self.slots.get(at)?.as_ref());
        let winner = winner.map_or("another agent", |winner| winner.agent_id.as_str());
        SubAgentResult {
            success: false,
            response: None,
            error: Some(format!("not used: {winner} answered first")),
            error_type: Some(SubAgentResult::NOT_USED.to_owned()),
            full_text: None,
            limit: None,
            ..result.clone()
        }
    }
}

/// Concatenates the responses. Each is preceded by its agent's id if there are several.
pub(super) fn synthesis(results: &[SubAgentResult]) -> String {
    let counted = || results.iter().filter(|result| result.is_used());
    let responses: Vec<(&AgentName, &str)> =
        counted().filter_map(|result| Some((&result.agent_id, result.response.as_deref()?))).collect();
    match responses.as_slice() {
        [] if counted().next().is_none() => NO_RESPONSES.to_owned(),
        [] => ALL_FAILED.to_owned(),
        [(_, response)] => (*response).to_owned(),
        several => {
            let parts = several.iter().map(|(id, response)| format!("From {id}:\n{response}"));
            parts.collect::<Vec<_>>().join("\n\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(id: &str, response: Option<&str>) -> SubAgentResult {
        SubAgentResult {
            agent_id: AgentName::parse(id).unwrap(),
            success: response.is_some(),
            response: response.map(str::to_owned),
            error: response.is_none().then(|| "broken".to_owned()),
            error_type: response.is_none().then(|| "server".to_owned()),
            latency_ms: 0,
            session_id: None,
            cached: false,
            limit: None,
            full_text: None,
        }
    }

    fn filled(results: &[(usize, SubAgentResult)]) -> ResultBuffer {
        let mut buffer = ResultBuffer::new(results.len());
        for (at, result) in results {
            buffer.put(*at, result.clone());
        }
        buffer
    }

    /// B8, B10, I1
    #[test]
    fn responses_are_joined_into_one_text() {
        assert_eq!(ResultBuffer::default().synthesis(), "No responses received from sub-agents.");
        assert_eq!(ResultBuffer::new(2).synthesis(), "No responses received from sub-agents.");
        let failed = filled(&[(0, result("b", None)), (1, result("c", None))]);
        assert_eq!(failed.synthesis(), "All sub-agents failed to provide responses.");
        let one = filled(&[(0, result("b", None)), (1, result("c", Some(" As it is.\n")))]);
        assert_eq!(one.synthesis(), " As it is.\n");
        let two = filled(&[(0, result("b", Some("One."))), (1, result("c", Some("Two.")))]);
        assert_eq!(two.synthesis(), "From b:\nOne.\n\nFrom c:\nTwo.");
    }

    /// B6, B10
    #[test]
    fn results_keep_request_order_and_failures_are_counted() {
        let buffer =
            filled(&[(2, result("d", Some("3"))), (0, result("b", Some("1"))), (1, result("c", None))]);
        let ids: Vec<String> = buffer.results().iter().map(|one| one.agent_id.to_string()).collect();
        assert_eq!(ids, ["b", "c", "d"]);
        assert_eq!((buffer.asked(), buffer.succeeded(), buffer.failures().len()), (3, 2, 1));
        let mut buffer = buffer;
        buffer.put(7, result("x", None));
        assert_eq!(buffer.results().len(), 3, "nobody asked the eighth");
    }

    /// B4
    #[test]
    fn only_the_first_success_counts() {
        let stopped = SubAgentResult { error_type: Some("cancelled".into()), ..result("d", None) };
        let mut buffer = filled(&[
            (0, result("b", None)),
            (1, result("c", Some("Mine."))),
            (2, stopped),
            (3, result("e", Some("Late."))),
        ]);
        buffer.set_winner(1);
        buffer.set_winner(3);
        assert_eq!(buffer.synthesis(), "Mine.");
        assert_eq!((buffer.succeeded(), buffer.failures().len(), buffer.not_used_count()), (1, 1, 2));
        let codes: Vec<Option<String>> = buffer.results().into_iter().map(|one| one.error_type).collect();
        let used = |code: &str| Some(code.to_owned());
        assert_eq!(codes, [used("server"), None, used("not_used"), used("not_used")]);
        assert!(buffer.results()[3].response.is_none());
    }
}
