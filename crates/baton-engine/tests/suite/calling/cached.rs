//! Results that are used again, and those that are not.

use std::sync::Arc;
use std::time::Duration;

use baton_core::agent::Caching;
use baton_core::model::ModelErrorKind;
use baton_core::store::RunStatus;
use baton_core::{HumanDuration, TenantId, ThreadId, UserId};
use baton_engine::{Engine, RunRequest};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::{Value, json};

use super::{asked_names, call, pattern, two};
use crate::delegation::told;
use crate::{Setup, name};

/// A cache of an hour.
fn cached(model: &Scripted) -> Setup {
    two(model).agent(|agent| agent.delegation.cache = Some(Caching::For(HumanDuration::from_mins(60))))
}

/// Runs on one store after another, each on a thread of its own, and returns what `a` was told in each.
async fn one_after_the_other(setups: Vec<(Setup, &str, &str)>, model: &Scripted) -> Vec<Value> {
    let mut store = None;
    let mut results = Vec::new();
    for (setup, tenant, user) in setups {
        let (mut parts, mut request) = setup.parts().await;
        let store = store.get_or_insert_with(|| Arc::clone(&parts.store));
        parts.store = Arc::clone(store);
        request.caller.tenant = TenantId::parse(tenant).unwrap();
        request.caller.user = UserId::parse(user).unwrap();
        request.caller.thread_id = ThreadId::random();
        assert_eq!(
            Engine::new(parts).start(request).await.unwrap().finish().await.status,
            RunStatus::Completed
        );
        results.push(told(model, "a").remove(0));
    }
    results
}

fn repeated(times: usize) -> Scripted {
    let turns = (0..times).flat_map(|_| [call("b"), ScriptedTurn::text("Done.")]);
    Scripted::default()
        .script("a", turns)
        .script("b", (1..=times).map(|n| ScriptedTurn::text(&format!("B{n}."))))
}

/// F18, B19: the same mission is not worked on again, costs nothing, and says so.
#[tokio::test]
async fn f18_result_is_cached() {
    let model = repeated(2);
    let told =
        one_after_the_other(vec![(cached(&model), "acme", "ada"), (cached(&model), "acme", "ada")], &model)
            .await;
    assert_eq!((&told[0]["result"], told[0].get("cached")), (&json!("B1."), None));
    assert_eq!((&told[1]["result"], &told[1]["cached"]), (&json!("B1."), &json!(true)));
    assert_eq!((told[1].get("session_id"), &told[1]["steps_taken"]), (None, &json!(0)));
    assert_eq!(asked_names(&model).iter().filter(|name| *name == "b").count(), 1);
}

/// F18: another mission, person, tenant, version, prompt, helper or strategy is another result.
#[tokio::test]
async fn f18_different_input_misses_the_cache() {
    let model = repeated(7);
    let plain = || cached(&model);
    let with = |change: fn(&mut Setup)| {
        let mut setup = cached(&model);
        change(&mut setup);
        setup
    };
    let told = one_after_the_other(
        vec![
            (plain(), "acme", "ada"),
            (plain(), "acme", "eve"),
            (plain(), "other", "ada"),
            (with(|setup| setup.others[0].version = "1.1.0".parse().unwrap()), "acme", "ada"),
            (with(|setup| setup.others[0].prompt = "Be brief.".into()), "acme", "ada"),
            (with(|setup| setup.others[0].agents = vec![name("c")]), "acme", "ada"),
            (
                with(|setup| {
                    setup.others[0].agents = vec![name("c")];
                    setup.others[1].prompt = "Be long.".into();
                }),
                "acme",
                "ada",
            ),
            (plain(), "acme", "ada"),
        ],
        &repeat_last(&model),
    )
    .await;
    let results: Vec<&str> = told.iter().map(|told| told["result"].as_str().unwrap()).collect();
    assert_eq!(results, ["B1.", "B2.", "B3.", "B4.", "B5.", "B6.", "B7.", "B1."]);
}

/// F18: what another model thought, or what was found with tools that are forbidden by now, is another result.
#[tokio::test]
async fn f18_changed_models_and_tools_miss_the_cache() {
    let model = repeated(4);
    let default = |text: &str| {
        let mut setup = cached(&model);
        setup.models = baton_engine::ModelRegistry::new(baton_core::agent::ModelName::parse(text).unwrap())
            .with_provider(Arc::new(model.clone()));
        setup
    };
    let confined = default("scripted/m").policy(|policy| policy.sub_agent_tools = vec![pattern("look")]);
    let runs = [default("scripted/m"), default("scripted/n"), confined, default("scripted/m")];
    let told = one_after_the_other(runs.map(|setup| (setup, "acme", "ada")).into(), &model).await;
    let results: Vec<&str> = told.iter().map(|told| told["result"].as_str().unwrap()).collect();
    assert_eq!(results, ["B1.", "B2.", "B3.", "B1."]);
}

/// F18, A17: who reads the conversation answers about that conversation, so nothing of it is used in another one.
#[tokio::test]
async fn f18_results_from_the_conversation_are_not_cached() {
    for reader in [0, 1] {
        let model = repeated(2);
        let setup = || {
            let mut setup = cached(&model);
            setup.others[0].agents = vec![name("c")];
            setup.others[reader].tools.allow = vec![pattern("read_thread")];
            setup
        };
        let told =
            one_after_the_other(vec![(setup(), "acme", "ada"), (setup(), "acme", "ada")], &model).await;
        assert_eq!((&told[0]["result"], &told[1]["result"]), (&json!("B1."), &json!("B2.")));
    }
}

/// The same model with one more call.
fn repeat_last(model: &Scripted) -> Scripted {
    model.clone().script("a", [call("b"), ScriptedTurn::text("Done.")])
}

/// F18: the operator's default counts where the file says nothing; when the time is over, the result is.
#[tokio::test]
async fn f18_cached_results_expire() {
    let model = repeated(3);
    let briefly = || two(&model).policy(|policy| policy.result_cache = Some(Duration::from_millis(1)));
    let (parts, request) = briefly().parts().await;
    let engine = Engine::new(parts);
    for expected in ["B1.", "B2."] {
        let request = RunRequest { caller: request.caller.clone(), ..request.clone() };
        engine.start(request).await.unwrap().finish().await;
        assert_eq!(told(&model, "a").last().unwrap()["result"], expected);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// F18: what failed, or ended early, is not used again.
#[tokio::test]
async fn f18_only_complete_results_are_cached() {
    let model = Scripted::default()
        .script("a", (0..3).flat_map(|_| [call("b"), ScriptedTurn::text("Done.")]))
        .script(
            "b",
            [
                ScriptedTurn::error(ModelErrorKind::Auth),
                ScriptedTurn::default().say("Cut").too_long(),
                ScriptedTurn::text("Whole."),
            ],
        );
    let runs = (0..3).map(|_| (cached(&model), "acme", "ada")).collect();
    let told = one_after_the_other(runs, &model).await;
    assert_eq!(told[0]["success"], false);
    assert_eq!((&told[1]["result"], &told[1]["limit"]), (&json!("Cut"), &json!("length")));
    assert_eq!(told[2]["result"], "Whole.");
}

/// F18: a cache that holds nonsense, or is not there, is a cache without the result.
#[tokio::test]
async fn f18_failing_cache_is_ignored() {
    for breakage in ["UPDATE results SET value = '7'", "DROP TABLE results"] {
        let folder = tempfile::tempdir().unwrap();
        let model = repeated(2);
        for expected in ["B1.", "B2."] {
            let (mut parts, mut request) = cached(&model).parts().await;
            parts.store = Arc::new(baton_store::open("sqlite://baton.db", folder.path()).await.unwrap());
            request.caller.thread_id = ThreadId::random();
            let end = Engine::new(parts).start(request).await.unwrap().finish().await;
            assert_eq!(end.status, RunStatus::Completed, "{breakage}");
            assert_eq!(told(&model, "a")[0]["result"], expected, "{breakage}");
            if expected == "B1." {
                let file = rusqlite::Connection::open(folder.path().join("baton.db")).unwrap();
                file.execute_batch(breakage).unwrap();
            }
        }
    }
}

/// B19: what a file says about its results goes before what the operator says.
#[tokio::test]
async fn b19_agent_file_can_disable_the_cache() {
    for (cache, calls) in [(None, 1), (Some(Caching::Off), 2)] {
        let again =
            || ScriptedTurn::call("call_agent", &json!({"mission": "Look it up.", "specialist": "b"}));
        let model = Scripted::default()
            .script("a", [again(), again(), ScriptedTurn::text("Done.")])
            .script("b", [ScriptedTurn::text("Found."), ScriptedTurn::text("Found again.")]);
        let setup = two(&model).policy(|policy| policy.result_cache = Some(Duration::from_hours(1)));
        setup.agent(|agent| agent.delegation.cache = cache).run().await;
        let asked = model.asked().iter().filter(|asked| asked.agent == "b").count();
        assert_eq!(asked, calls, "{cache:?}");
    }
}
