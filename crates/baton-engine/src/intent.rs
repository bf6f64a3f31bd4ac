//! Recognizes messages whose meaning needs no model: exit, yes, no, continue, greeting, a request for another agent and the reply to the
//! question about it.

pub(crate) mod conflict_reply;
pub(crate) mod second_request;

/// Longer messages say more than a bare intent.
const MAX_WORDS: usize = 6;
const YES: &[&str] =
    &["yes", "yes please", "y", "yep", "yeah", "sure", "ok", "okay", "of course", "please do", "go ahead"];
const NO: &[&str] = &["no", "n", "nope", "nah", "not now", "not yet", "later", "maybe later"];
const CONTINUE: &[&str] =
    &["continue", "resume", "go on", "carry on", "lets continue", "let us continue", "pick it up"];
const GREETINGS: &[&str] =
    &["hi", "hello", "hey", "good morning", "good evening", "good afternoon", "im back", "i am back"];
/// May precede or follow any of these phrases.
const POLITE: &[&str] =
    &["please", "thanks", "thank you", "now", "yes", "ok", "okay", "it", "there", "with it", "with that"];

/// Whether the message is an exit word and nothing else.
pub(crate) fn is_exit(exit_words: &[String], message: &str) -> bool {
    let Some(message) = normalized(message) else { return false };
    exit_words.iter().filter_map(|word| normalized(word)).any(|word| matches_word(&message, &word))
}

/// Whether the message agrees, and says nothing else.
pub fn is_yes(message: &str) -> bool {
    normalized(message).is_some_and(|message| YES.iter().any(|word| matches_word(&message, word)))
}

/// Whether the message declines, and says nothing else.
pub(crate) fn is_no(message: &str) -> bool {
    normalized(message).is_some_and(|message| NO.iter().any(|word| matches_word(&message, word)))
}

/// Whether the user wants to continue what was interrupted.
pub(crate) fn is_continue(message: &str) -> bool {
    let begins = |message: &str| message.starts_with("continue ") || message.starts_with("resume ");
    normalized(message)
        .is_some_and(|message| CONTINUE.iter().any(|word| matches_word(&message, word)) || begins(&message))
}

pub(crate) fn is_greeting(message: &str) -> bool {
    normalized(message).is_some_and(|message| GREETINGS.iter().any(|word| matches_word(&message, word)))
}

/// Whether the message is `word`, alone or with a polite phrase before or after it.
fn matches_word(message: &str, word: &str) -> bool {
    let rest = match (message.strip_prefix(word), message.strip_suffix(word)) {
        (Some(rest), _) | (None, Some(rest)) => rest.trim(),
        (None, None) => return false,
    };
    rest.is_empty() || (message.len() > rest.len() + word.len() && POLITE.contains(&rest))
}

/// Lower-case words with single spaces. `None` if the message is empty or longer than 80 bytes or [`MAX_WORDS`] words.
fn normalized(message: &str) -> Option<String> {
    let letters = |c: char| if c.is_alphanumeric() { c } else { ' ' };
    // An apostrophe does not end a word.
    let message = message.trim().replace(['\'', '’'], "");
    if message.len() > 80 {
        return None;
    }
    let text: String = message.to_lowercase().chars().map(letters).collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    (!words.is_empty() && words.len() <= MAX_WORDS).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_14_exit_words_count_only_alone() {
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
    fn yes_no_and_continue_are_distinguished_from_answers() {
        assert!(is_yes("Yes!") && is_yes("ok, please") && !is_yes("yes men") && !is_yes("no"));
        assert!(is_no("No, thanks.") && is_no("not now") && is_no("Later, please"));
        assert!(!is_no("now") && !is_no("No idea") && !is_no("North") && !is_no("yes"));
        assert!(
            is_continue("Continue")
                && is_continue("let's continue")
                && is_continue("continue creating the skill")
        );
        assert!(is_continue("yes, continue") && !is_continue("to be continued"));
        assert!(
            is_greeting("Hello there!") && is_greeting("I'm back") && !is_greeting("hello world program")
        );
    }
}
