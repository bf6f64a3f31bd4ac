//! How much slower a model is than the hosted models that the time limits of agent files are written for. Measured from the calls
//! that this process has finished.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use baton_core::usage::Tokens;

/// Tokens per second of a hosted model, of a prompt and of a reply.
const PROMPT_TOKENS_PER_SECOND: f64 = 1500.0;
const REPLY_TOKENS_PER_SECOND: f64 = 40.0;
/// Seconds until a hosted model begins, apart from its prompt.
const START_SECONDS: f64 = 0.5;
/// Time limits are multiplied by at most this much: a model that is slower than this is of no use.
const MAX_FACTOR: f64 = 60.0;
/// How much of the last measurement stays when a call was faster. One slow call counts at once, because a limit that is too short
/// loses work and one that is too long costs nothing.
const STAYS: f64 = 0.8;

/// The measured speed of every model, by provider and name.
#[derive(Debug, Default)]
pub(crate) struct ModelSpeeds(Mutex<HashMap<String, HashMap<String, f64>>>);

impl ModelSpeeds {
    /// Adds a finished call.
    pub(crate) fn record(&self, provider: &str, model: &str, tokens: Tokens, took: Duration) {
        let now = slowdown(tokens, took);
        let mut speeds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = speeds.get_mut(provider).and_then(|models| models.get_mut(model)) else {
            speeds.entry(provider.to_owned()).or_default().insert(model.to_owned(), now);
            return;
        };
        *known = if now > *known { now } else { *known * STAYS + now * (1.0 - STAYS) };
    }

    /// What time limits are multiplied by. `None` before the first call has finished.
    pub(crate) fn factor(&self, provider: &str, model: &str) -> Option<NonZeroU32> {
        let speeds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let slowdown = *speeds.get(provider)?.get(model)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and MAX_FACTOR"
        )]
        let factor = slowdown.ceil().clamp(1.0, MAX_FACTOR) as u32;
        NonZeroU32::new(factor)
    }
}

/// How many times longer a call took than one of a hosted model with as many tokens.
fn slowdown(tokens: Tokens, took: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a rough measure")]
    let count = |tokens: u64| tokens as f64;
    let prompt = count(tokens.input_tokens.saturating_sub(tokens.cached_tokens)) / PROMPT_TOKENS_PER_SECOND;
    let reply = count(tokens.output_tokens) / REPLY_TOKENS_PER_SECOND;
    took.as_secs_f64() / (START_SECONDS + prompt + reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(input_tokens: u64, cached_tokens: u64, output_tokens: u64) -> Tokens {
        Tokens { input_tokens, cached_tokens, output_tokens, ..Tokens::default() }
    }

    #[test]
    fn slow_calls_count_at_once_and_fast_ones_by_and_by() {
        let speeds = ModelSpeeds::default();
        let factor = || speeds.factor("p", "m").map(NonZeroU32::get);
        let record = |tokens, seconds| speeds.record("p", "m", tokens, Duration::from_secs(seconds));
        assert_eq!((factor(), speeds.factor("p", "other")), (None, None));
        record(tokens(1500, 0, 20), 60);
        assert_eq!(factor(), Some(30), "a prompt of 1500 tokens and 20 tokens take 2 s elsewhere");
        record(tokens(1500, 1500, 20), 2);
        assert_eq!(factor(), Some(25));
        for _ in 0..30 {
            record(tokens(1500, 1500, 20), 1);
        }
        assert_eq!(factor(), Some(2), "rounded up");
        record(tokens(0, 0, 0), 3600);
        assert_eq!(factor(), Some(60));
    }
}
