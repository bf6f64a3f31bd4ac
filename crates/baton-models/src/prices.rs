//! What well-known models cost and how much fits into them.
//!
//! Published list prices for standard calls, last compared with the providers' pages on 2026-11-15. A model that is not here has an unknown price, never a
//! price of zero; `baton.toml` can override a row or add one. Models whose price depends on the length of the call are
//! listed without one: a single number would show too little.

use baton_core::Usd;
use baton_core::model::ModelFacts;
use baton_core::usage::Price;

struct PriceRow {
    provider: &'static str,
    model: &'static str,
    context_window: u64,
    /// Thousandths of a dollar for a million tokens: input, cached input, output.
    price: Option<[i64; 3]>,
}

const fn row(provider: &'static str, model: &'static str, context_window: u64, price: [i64; 3]) -> PriceRow {
    PriceRow { provider, model, context_window, price: Some(price) }
}

const fn unpriced(provider: &'static str, model: &'static str, context_window: u64) -> PriceRow {
    PriceRow { provider, model, context_window, price: None }
}

#[rustfmt::skip]
const ROWS: &[PriceRow] = &[
    row("openai", "gpt-5", 400_000, [1_250, 125, 10_000]),
    row("openai", "gpt-5-mini", 400_000, [250, 25, 2_000]),
    row("openai", "gpt-5-nano", 400_000, [50, 5, 400]),
    row("openai", "gpt-5.1", 400_000, [1_250, 125, 10_000]),
    row("openai", "gpt-5.2", 400_000, [1_750, 175, 14_000]),
    row("openai", "gpt-5.4-mini", 400_000, [750, 75, 4_500]),
    row("openai", "gpt-5.4-nano", 400_000, [200, 20, 1_250]),
    row("openai", "gpt-4.1", 1_047_576, [2_000, 500, 8_000]),
    row("openai", "gpt-4.1-mini", 1_047_576, [400, 100, 1_600]),
    row("openai", "gpt-4.1-nano", 1_047_576, [100, 25, 400]),
    row("openai", "gpt-4o", 128_000, [2_500, 1_250, 10_000]),
    row("openai", "gpt-4o-mini", 128_000, [150, 75, 600]),
    row("openai", "o3", 200_000, [2_000, 500, 8_000]),
    row("openai", "o4-mini", 200_000, [1_100, 275, 4_400]),

    row("anthropic", "claude-opus-5-5", 1_000_000, [4_000, 200, 20_000]),
    row("anthropic", "claude-opus-5", 1_000_000, [5_000, 500, 25_000]),
    row("anthropic", "claude-opus-4-7", 1_000_000, [5_000, 500, 25_000]),
    row("anthropic", "claude-opus-4-6", 200_000, [5_000, 500, 25_000]),
    row("anthropic", "claude-opus-4-5", 200_000, [5_000, 500, 25_000]),
    row("anthropic", "claude-opus-4-1", 200_000, [15_000, 1_500, 75_000]),
    row("anthropic", "claude-sonnet-5-5", 1_000_000, [2_000, 200, 10_000]),
    row("anthropic", "claude-sonnet-5", 1_000_000, [2_000, 200, 10_000]),
    row("anthropic", "claude-sonnet-4-6", 200_000, [3_000, 300, 15_000]),
    row("anthropic", "claude-sonnet-4-5", 200_000, [3_000, 300, 15_000]),
    row("anthropic", "claude-sonnet-4", 200_000, [3_000, 300, 15_000]),
    unpriced("anthropic", "claude-haiku-5-5", 1_000_000),
    row("anthropic", "claude-haiku-4-5", 200_000, [1_000, 100, 5_000]),

    unpriced("gemini", "gemini-2.5-pro", 1_048_576),
    row("gemini", "gemini-2.5-flash", 1_048_576, [300, 30, 2_500]),
    row("gemini", "gemini-2.5-flash-lite", 1_048_576, [100, 10, 400]),
];

/// What is known about a model, by its exact id or by its id without a date.
pub fn facts(provider: &str, model: &str) -> ModelFacts {
    let provider = if provider == "google" { "gemini" } else { provider };
    let fits = |row: &&PriceRow| row.provider == provider && is_version(model, row.model);
    let best = ROWS.iter().filter(fits).max_by_key(|row| row.model.len());
    best.map_or_else(ModelFacts::default, |row| ModelFacts {
        price: row.price.map(|price| price_of(row.provider, price)),
        context_window: Some(row.context_window),
        ..ModelFacts::default()
    })
}

/// Anthropic asks 1.25 times the price of input for what it keeps for five minutes; the others ask nothing more.
fn price_of(provider: &str, [input, cached_input, output]: [i64; 3]) -> Price {
    let usd = |thousandths: i64| Usd::from_nanos(thousandths * 1_000_000);
    let cache_write = if provider == "anthropic" { Usd::from_nanos(input * 1_250_000) } else { usd(input) };
    Price { input: usd(input), cached_input: usd(cached_input), cache_write, output: usd(output) }
}

/// `gpt-5-mini-2025-08-07` is `gpt-5-mini`; `gpt-5-mini` is not `gpt-5`.
fn is_version(model: &str, name: &str) -> bool {
    match model.strip_prefix(name) {
        Some("") => true,
        Some(suffix) => suffix.strip_prefix('-').is_some_and(is_date),
        None => false,
    }
}

/// `20250929`, `2025-08-07`, `latest`.
fn is_date(suffix: &str) -> bool {
    let digits = suffix.bytes().filter(u8::is_ascii_digit).count();
    let dashes = suffix.bytes().filter(|byte| *byte == b'-').count();
    let is_numeric = digits + dashes == suffix.len();
    suffix == "latest" || (is_numeric && digits == 8 && matches!(dashes, 0 | 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_found_by_id_or_date() {
        let input = |provider, model| facts(provider, model).price.map(|price| price.input.to_string());
        assert_eq!(input("openai", "gpt-5-mini").as_deref(), Some("$0.25"));
        assert_eq!(input("openai", "gpt-5-mini-2025-08-07").as_deref(), Some("$0.25"));
        assert_eq!(input("openai", "gpt-5-2025-08-07").as_deref(), Some("$1.25"));
        assert_eq!(input("anthropic", "claude-sonnet-4-20250514").as_deref(), Some("$3.00"));
        assert_eq!(input("google", "gemini-2.5-flash").as_deref(), Some("$0.30"));
        for unknown in ["gpt-5-pro", "gpt-5-mini-audio", "gpt-5-codex-2025-08-07", "gpt", ""] {
            assert_eq!(facts("openai", unknown), ModelFacts::default(), "{unknown}");
        }
        assert_eq!(facts("openrouter", "gpt-5").price, None, "another seller has its own price");
        assert_eq!(facts("gemini", "gemini-2.5-pro").price, None);
        assert!(facts("gemini", "gemini-2.5-pro").context_window.is_some());
    }

    #[test]
    fn writing_to_a_cache_has_a_price_of_its_own_only_where_it_costs_more() {
        let price = |provider, model| facts(provider, model).price.unwrap();
        let sonnet = price("anthropic", "claude-sonnet-4-5");
        assert_eq!(sonnet.cache_write.to_string(), "$3.75");
        assert_eq!(sonnet.cached_input.to_string(), "$0.30");
        let gpt = price("openai", "gpt-5");
        assert_eq!(gpt.cache_write, gpt.input);
        let gemini = price("gemini", "gemini-2.5-flash");
        assert_eq!((gemini.cache_write, gemini.cached_input.to_string()), (gemini.input, "$0.03".to_owned()));
    }

    #[test]
    fn no_row_twice() {
        let mut keys: Vec<_> = ROWS.iter().map(|row| (row.provider, row.model)).collect();
        keys.sort_unstable();
        assert!(keys.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
