//! Short messages whose meaning needs no model: leaving, yes, going on.

/// Longer ones say more than that.
const MOST_WORDS: usize = 6;
const YES: &[&str] =
    &["yes", "yes please", "y", "yep", "yeah", "sure", "ok", "okay", "of course", "please do", "go ahead"];
const GO_ON: &[&str] =
    &["continue", "resume", "go on", "carry on", "lets continue", "let us continue", "pick it up"];
const GREETINGS: &[&str] =
    &["hi", "hello", "hey", "good morning", "good evening", "good afternoon", "im back", "i am back"];
/// May stand around any of them.
const POLITE: &[&str] =
    &["please", "thanks", "thank you", "now", "yes", "ok", "okay", "it", "there", "with it", "with that"];

/// Whether the message is one of the words that always bring the person back, and nothing else.
pub(crate) fn is_exit(exit_words: &[String], message: &str) -> bool {
    let Some(message) = bare(message) else { return false };
    exit_words.iter().filter_map(|word| bare(word)).any(|word| is(&message, &word))
}

/// Whether the message agrees, and says nothing else.
pub fn is_yes(message: &str) -> bool {
    bare(message).is_some_and(|message| YES.iter().any(|word| is(&message, word)))
}

/// Whether somebody wants to go on with what was left.
pub(crate) fn is_going_on(message: &str) -> bool {
    let begins = |message: &str| message.starts_with("continue ") || message.starts_with("resume ");
    bare(message).is_some_and(|message| GO_ON.iter().any(|word| is(&message, word)) || begins(&message))
}

pub(crate) fn is_greeting(message: &str) -> bool {
    bare(message).is_some_and(|message| GREETINGS.iter().any(|word| is(&message, word)))
}

/// The word itself, or with something polite before or after it.
fn is(message: &str, word: &str) -> bool {
    let rest = match (message.strip_prefix(word), message.strip_suffix(word)) {
        (Some(rest), _) | (None, Some(rest)) => rest.trim(),
        (None, None) => return false,
    };
    rest.is_empty() || (message.len() > rest.len() + word.len() && POLITE.contains(&rest))
}

/// Small letters and single spaces, if it is short.
fn bare(message: &str) -> Option<String> {
    let letters = |c: char| if c.is_alphanumeric() { c } else { ' ' };
    // An apostrophe does not end a word.
    let message = message.trim().replace(['\'', '’'], "");
    if message.len() > 80 {
        return None;
    }
    let text: String = message.to_lowercase().chars().map(letters).collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    (!words.is_empty() && words.len() <= MOST_WORDS).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_14_words_leave_only_when_they_stand_alone() {
        let words: Vec<String> = ["cancel", "stop", "never mind"].map(str::to_owned).to_vec();
        let leaves = |message: &str| is_exit(&words, message);
        assert!(leaves("cancel") && leaves(" Cancel! ") && leaves("STOP.") && leaves("Never mind, thanks"));
        assert!(leaves("please stop") && leaves("cancel it"));
        assert!(
            !leaves("Do not stop the alerts")
                && !leaves("stop words")
                && !leaves("cancellation")
                && !leaves("")
        );
        assert!(!leaves("It should cancel an order when I say stop") && !leaves("unstop"));
    }

    #[test]
    fn yes_and_going_on_are_told_apart_from_answers() {
        assert!(is_yes("Yes!") && is_yes("ok, please") && !is_yes("yes men") && !is_yes("no"));
        assert!(
            is_going_on("Continue")
                && is_going_on("let's continue")
                && is_going_on("continue creating the skill")
        );
        assert!(is_going_on("yes, continue") && !is_going_on("to be continued"));
        assert!(
            is_greeting("Hello there!") && is_greeting("I'm back") && !is_greeting("hello world program")
        );
    }
}
