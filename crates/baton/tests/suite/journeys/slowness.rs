//! Somebody behind the scenes takes long, and in the end too long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::person::Person;
use super::{QUESTION, edit, project};
use crate::crash::wire::{self, Answer, HANG};
use crate::served::Served;

/// B12, B14, I13: after 2 s the person sees that somebody looks, after half of the time (4 s at least) that it takes longer, and when
/// the time is over they get an answer all the same. The time is `limits.timeout` of whoever is asked.
#[test]
fn b_14_i13_the_person_hears_that_it_takes_long_and_then_an_answer() {
    let is_asked = Arc::new(AtomicBool::new(false));
    let base_url = wire::serve(move |_| {
        let frames = vec![wire::text("Let me see")];
        (!is_asked.swap(true, Ordering::Relaxed)).then_some(Answer { frames, finish: HANG })
    });
    let dir = project(&format!("[models.providers.local]\nbase_url = \"{base_url}\"\n"));
    edit(&dir, "knowledge", "name: knowledge\n", "name: knowledge\nmodel: local/m\n");
    edit(&dir, "knowledge", "timeout: 60s", "timeout: 5s");
    let served = Served::start(dir.path());
    let ada = Person::new(&served);
    let begun = Instant::now();
    let turn = ada.say(QUESTION);
    assert!(turn.is_well(), "{:?}", turn.events);
    assert_eq!(turn.statuses(), ["Researching…", "This is taking longer than expected…"], "J1.3, B12, B14");
    assert!(begun.elapsed() > Duration::from_secs(4), "{:?}", begun.elapsed());
    assert!(turn.said().starts_with("I'm working with limited resources right now"), "B14: {}", turn.said());
    assert!(!turn.said().contains("Let me see"), "half an answer is none: {}", turn.said());
    assert_eq!(turn.speakers(), ["Assistant"], "B12: one voice");
}
