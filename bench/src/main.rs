//! `make bench`: measures speed as ratios within one run, because machines are noisy. Prints each goal with whether
//! it was met, and fails if one was not.
//!
//! Run all with `make bench`, or some with `make bench ONLY=agents`.

mod agents;
mod approvals;
mod attacks;
mod cpu;
mod floor;
mod handoffs;
mod learning;
mod patterns;
mod provider;
mod server;
mod store;
mod targets;
mod turns;

use std::process::ExitCode;

/// One measurement: its name and what runs it.
type Bench = (&'static str, fn(&mut Goals));

const BENCHES: &[Bench] = &[
    ("agents", agents::run),
    ("turns", turns::run),
    ("patterns", patterns::run),
    ("handoffs", handoffs::run),
    ("learning", learning::run),
    ("approvals", approvals::run),
    ("store", store::run),
    ("server", server::run),
    ("streams", server::streams::run),
    ("attacks", attacks::run),
    ("floor", floor::run),
    ("targets", targets::run),
];

/// What was promised, and whether it held.
#[derive(Debug, Default)]
struct Goals {
    missed: usize,
}

impl Goals {
    /// `value` must stay below `limit`.
    fn below(&mut self, what: &str, value: f64, limit: f64) {
        let met = value < limit;
        self.missed += usize::from(!met);
        println!("  goal: {what} {value:.3} < {limit}  {}", if met { "met" } else { "MISSED" });
    }
}

impl Goals {
    /// `value` may be `limit`, but not more.
    fn at_most(&mut self, what: &str, value: f64, limit: f64) {
        let met = value <= limit;
        self.missed += usize::from(!met);
        println!("  goal: {what} {value:.3} ≤ {limit}  {}", if met { "met" } else { "MISSED" });
    }

    /// `value` must reach `limit`.
    fn at_least(&mut self, what: &str, value: f64, limit: f64) {
        let met = value >= limit;
        self.missed += usize::from(!met);
        println!("  goal: {what} {value:.3} ≥ {limit}  {}", if met { "met" } else { "MISSED" });
    }
}

fn main() -> ExitCode {
    let only: Vec<String> = std::env::args().skip(1).collect();
    if only.iter().any(|argument| argument == "--provider") {
        provider::serve();
        return ExitCode::SUCCESS;
    }
    if let [mode, rest @ ..] = only.as_slice() {
        match mode.as_str() {
            "--proxy" => return server::proxy::serve(&rest[0]),
            "--baton" => return server::baton(rest),
            "--floor" => return floor::serve(&rest[0], &rest[1]),
            _ => {}
        }
    }
    let mut goals = Goals::default();
    for (name, run) in
        BENCHES.iter().filter(|(name, _)| only.is_empty() || only.iter().any(|wanted| wanted == name))
    {
        println!("{name}");
        run(&mut goals);
    }
    if goals.missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
