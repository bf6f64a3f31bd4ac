use jiff::SignedDuration;

use super::*;

fn name(text: &str) -> AgentName {
    AgentName::parse(text).unwrap()
}

fn days(number: f64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs_f64(number * 86_400.0)
}

fn known(agent: &str, wins: f64, tries: f64, cost_nanos: f64) -> Experience {
    let tally = Tally { tries, wins, cost_nanos: cost_nanos * tries, at: days(0.0) };
    Experience { query_class: "billing".into(), agent: name(agent), tally }
}

fn share(agents: &[&str], known: &[Experience], now: f64, wanted: &str) -> f64 {
    let candidates: Vec<AgentName> = agents.iter().map(|text| name(text)).collect();
    let suggested = (0..1000_u32)
        .filter(|seed| {
            let found = suggest("billing", &candidates, known, days(now), u64::from(*seed) * 7919).unwrap();
            found.agent.as_str() == wanted
        })
        .count();
    f64::from(u32::try_from(suggested).unwrap()) / 1000.0
}

/// G23: the better agent is suggested nearly always, an unknown one sometimes, and old evidence counts less.
#[test]
fn g_23_suggestions_follow_evidence_that_decays() {
    let both = [known("billing", 29.0, 31.0, 1.0), known("support", 25.0, 40.0, 1.0)];
    assert!(share(&["support", "billing"], &both, 0.0, "billing") > 0.98);
    let with_new = share(&["support", "billing", "new"], &both, 0.0, "new");
    assert!((0.01..0.4).contains(&with_new), "{with_new}");
    let later = share(&["support", "billing"], &both, 14.0, "billing");
    assert!((0.8..0.98).contains(&later), "{later}: after two half-lives there is more doubt");
    assert_eq!(
        suggest("billing", &[name("billing"), name("support")], &both, days(70.0), 1),
        None,
        "too old"
    );
    assert_eq!(suggest("law", &[name("billing"), name("support")], &both, days(0.0), 1), None);
    assert_eq!(suggest("billing", &[name("billing")], &both, days(0.0), 1), None, "nothing to choose");
}

/// G23: at equal success the cheaper agent is preferred.
#[test]
fn g_23_cheaper_agent_is_preferred_at_equal_success() {
    let equal = [known("cheap", 45.0, 50.0, 10.0), known("dear", 45.0, 50.0, 500.0)];
    assert!(share(&["dear", "cheap"], &equal, 0.0, "cheap") > 0.7);
    let better = [known("cheap", 10.0, 50.0, 10.0), known("dear", 45.0, 50.0, 500.0)];
    assert!(share(&["dear", "cheap"], &better, 0.0, "dear") > 0.99, "never for a worse answer");
}

#[test]
fn suggestion_is_the_same_for_the_same_seed() {
    let both = [known("billing", 5.0, 6.0, 1.0), known("support", 5.0, 6.0, 1.0)];
    let candidates = [name("billing"), name("support")];
    let first = suggest("billing", &candidates, &both, days(0.0), 42);
    assert_eq!(first, suggest("billing", &candidates, &both, days(0.0), 42));
    let texts: Vec<String> = first.unwrap().evidence.iter().map(Evidence::text).collect();
    assert_eq!(texts, ["billing 83% of 6", "support 83% of 6"]);
}

#[test]
fn evidence_is_bounded_and_halves_in_a_week() {
    let mut tally = Tally::new(days(0.0));
    for _ in 0..1000 {
        tally = tally.and(Tally { tries: 1.0, wins: 1.0, cost_nanos: 2_000_000.0, at: days(0.0) });
    }
    assert!((tally.tries - MAX_TRIES).abs() < 1e-6 && (tally.success() - 1.0).abs() < 1e-9, "{tally:?}");
    assert_eq!(tally.average_cost(), Usd::from_nanos(2_000_000));
    assert!((tally.decayed(days(7.0)).tries - MAX_TRIES / 2.0).abs() < 1e-6);
    assert_eq!(tally.decayed(days(-1.0)), tally);
}

/// G14: only what served the user is a win.
#[test]
fn g_14_cancelled_disliked_and_repeated_hops_are_no_wins() {
    let quiet = Aftermath::default();
    let judge = |kind, outcome| is_win(kind, outcome, quiet);
    assert_eq!(judge(HopKind::Route, HopOutcome::Completed), Some(true));
    assert_eq!(judge(HopKind::Handoff, HopOutcome::Cancelled), Some(false));
    assert_eq!(judge(HopKind::Transfer, HopOutcome::Declined), Some(false));
    assert_eq!(judge(HopKind::Delegation, HopOutcome::Cancelled), None);
    assert_eq!(judge(HopKind::Advice, HopOutcome::Completed), None);
    let completed = |aftermath| is_win(HopKind::Route, HopOutcome::Completed, aftermath);
    assert_eq!(completed(Aftermath { is_repeated: true, ..quiet }), Some(false));
    assert_eq!(completed(Aftermath { disliked: 1, ..quiet }), Some(false));
    assert_eq!(completed(Aftermath { liked: 1, disliked: 1, ..quiet }), Some(true));
}

#[test]
fn requests_with_the_same_words_are_the_same() {
    let of = |text: &str| request_fingerprint(&text.split(' '));
    assert!(is_same_request(of("charged twice november"), of("november charged twice")));
    assert!(!is_same_request(of("charged twice november"), of("reset password account")));
    assert!(!is_same_request(of("hello"), of("hello")), "one word is too little");
}

/// Success rates that drift: the best of four agents for a kind of request is another one every 500 requests.
fn rate(request: u32, kind: u32, agent: u32) -> f64 {
    let turn = f64::from(request) / 2000.0 + f64::from(kind) / 4.0 + f64::from(agent) / 4.0;
    0.55 + 0.35 * (std::f64::consts::TAU * turn).sin()
}

/// Regret against an oracle of suggestions that are followed, and of always taking the first agent, after each request.
fn replay(seed: u64) -> Vec<(f64, f64)> {
    let agents: Vec<AgentName> = (0..4).map(|n| name(&format!("agent-{n}"))).collect();
    let (mut known, mut world): (Vec<Experience>, Random) = (Vec::new(), Random(seed));
    let (mut regret, mut of_first, mut curve) = (0.0, 0.0, Vec::new());
    for request in 0..2000_u32 {
        let now = days(f64::from(request) * 60.0 / 2000.0);
        let kind = u32::try_from(world.next() % 4).unwrap();
        let class = format!("kind-{kind}");
        let found = suggest(&class, &agents, &known, now, seed ^ u64::from(request) << 20);
        // Without a suggestion a router takes one or the other.
        let chosen = found
            .map_or(request as usize % 4, |one| agents.iter().position(|agent| *agent == one.agent).unwrap());
        let rates: Vec<f64> = (0..4).map(|agent| rate(request, kind, agent)).collect();
        let best = rates.iter().copied().fold(0.0, f64::max);
        let is_won = world.unit() < rates[chosen];
        let tally = Tally { tries: 1.0, wins: f64::from(u8::from(is_won)), cost_nanos: 0.0, at: now };
        match known.iter_mut().find(|one| one.query_class == class && one.agent == agents[chosen]) {
            Some(one) => one.tally = one.tally.and(tally),
            None => known.push(Experience { query_class: class, agent: agents[chosen].clone(), tally }),
        }
        regret += best - rates[chosen];
        of_first += best - rates[0];
        curve.push((regret, of_first));
    }
    curve
}

/// G14, G23: under drift, the regret is less than half of that of always taking the first agent, both after 500 requests and of the
/// 1,500 that follow.
#[test]
fn g_14_regret_is_less_than_half_of_always_first() {
    let curves: Vec<_> = (1..=12).map(replay).collect();
    let sum = |at: usize| curves.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one[at].0, sum.1 + one[at].1));
    let (early, all) = (sum(499), sum(1999));
    assert!(early.0 < 0.5 * early.1, "500 requests: {} of {}", early.0, early.1);
    let (late, late_first) = (all.0 - early.0, all.1 - early.1);
    assert!(late < 0.5 * late_first, "the rest: {late} of {late_first}");
}
