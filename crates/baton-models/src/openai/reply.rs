//! The frames of a streamed chat completion.

use std::borrow::Cow;
use std::fmt;

use baton_core::Chunk;
use baton_core::model::Finish;
use baton_core::usage::Tokens;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::template::TextTemplate;
use crate::answer::Decode;
use crate::borrowed::{BorrowedText, Few};
use crate::calls::CallNumbers;
use crate::fault::ModelFault;
use crate::frames::Frame;
use crate::parts::data_url;
use crate::tool_names::ToolNames;

#[derive(Debug)]
pub(crate) struct OpenAiDecoder {
    calls: CallNumbers,
    /// Said before the tokens and the end; many servers say nothing after it.
    finish: Option<Finish>,
    template: TextTemplate,
}

/// Every field may be missing or null, and is, on one server or another.
#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(borrow)]
    choices: Option<Few<OpenAiReplyChoice<'a>>>,
    // Boxed, like everything that few frames have: a frame is moved several times while it is read.
    usage: Option<Box<OpenAiUsage>>,
    error: Option<Box<Value>>,
    /// Only in an error that is not wrapped.
    message: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct OpenAiReplyChoice<'a> {
    #[serde(borrow)]
    delta: Option<OpenAiDelta<'a>>,
    #[serde(borrow)]
    finish_reason: Option<BorrowedText<'a>>,
}

#[derive(Deserialize)]
struct OpenAiDelta<'a> {
    #[serde(borrow)]
    content: Option<OpenAiReplyContent<'a>>,
    #[serde(borrow)]
    refusal: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    reasoning: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    tool_calls: Option<Box<Few<CallDelta<'a>>>>,
    /// Images that the model made, in the form that several gateways use.
    images: Option<Vec<ImageDelta>>,
}

#[derive(Deserialize)]
struct ImageDelta {
    image_url: Option<ImageUrl>,
}

#[derive(Deserialize)]
struct ImageUrl {
    url: String,
}

enum OpenAiReplyContent<'a> {
    Text(BorrowedText<'a>),
    Pieces(Vec<ReasoningPiece<'a>>),
}

/// Mistral's reasoning models send pieces.
#[derive(Deserialize)]
struct ReasoningPiece<'a> {
    #[serde(borrow)]
    text: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    thinking: Option<Vec<ReasoningPiece<'a>>>,
    image_url: Option<ImageUrl>,
}

/// By hand, because serde keeps a copy of what it reads while it tries the variants of an untagged enum.
impl<'de: 'a, 'a> Deserialize<'de> for OpenAiReplyContent<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReplyContentVisitor)
    }
}

struct ReplyContentVisitor;

impl<'de> Visitor<'de> for ReplyContentVisitor {
    type Value = OpenAiReplyContent<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of pieces")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<OpenAiReplyContent<'de>, E> {
        Ok(OpenAiReplyContent::Text(BorrowedText(text.into())))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<OpenAiReplyContent<'de>, E> {
        Ok(OpenAiReplyContent::Text(BorrowedText(text.to_owned().into())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, pieces: A) -> Result<OpenAiReplyContent<'de>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(pieces)).map(OpenAiReplyContent::Pieces)
    }
}

#[derive(Deserialize)]
struct CallDelta<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    id: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    function: Option<FunctionDelta<'a>>,
}

#[derive(Deserialize)]
struct FunctionDelta<'a> {
    #[serde(borrow)]
    name: Option<BorrowedText<'a>>,
    /// Text by the book; some servers send the object itself.
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct OpenAiUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
    completion_tokens_details: Option<Details>,
    /// `DeepSeek`'s word for cached tokens.
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(rename = "cached_tokens")]
    cached: Option<u64>,
    /// Only of gateways to models whose caches have a price for writing.
    #[serde(rename = "cache_write_tokens")]
    written: Option<u64>,
    #[serde(rename = "reasoning_tokens")]
    reasoning: Option<u64>,
}

impl<'a> Completion<'a> {
    /// The text of a frame that holds nothing else that matters, if it needs no copy.
    fn only_text(&self) -> Option<&'a str> {
        let OpenAiReplyChoice { delta, finish_reason } = self.choices.as_ref()?.only()?;
        let is_open = finish_reason.as_ref().is_none_or(|reason| reason.0.is_empty());
        match delta.as_ref()? {
            OpenAiDelta {
                content: Some(OpenAiReplyContent::Text(BorrowedText(Cow::Borrowed(text)))),
                refusal: None,
                reasoning_content: None,
                reasoning: None,
                tool_calls: None,
                images: None,
            } if is_open && self.usage.is_none() => Some(*text),
            _ => None,
        }
    }
}

impl OpenAiDecoder {
    pub fn new(names: ToolNames) -> Self {
        Self { calls: CallNumbers::new(names), finish: None, template: TextTemplate::default() }
    }

    fn take_delta(&mut self, delta: OpenAiDelta<'_>, ready: &mut Vec<Chunk>) -> Result<(), ModelFault> {
        say(delta.reasoning_content.or(delta.reasoning), Chunk::Reasoning, ready);
        match delta.content {
            Some(OpenAiReplyContent::Text(text)) => say(Some(text), Chunk::Text, ready),
            Some(OpenAiReplyContent::Pieces(pieces)) => {
                for piece in pieces {
                    take_piece(piece, ready);
                }
            }
            None => {}
        }
        // What the model refuses to do, it says to the person.
        say(delta.refusal, Chunk::Text, ready);
        let images = delta.images.into_iter().flatten();
        ready.extend(images.filter_map(|image| data_url(&image.image_url?.url)).map(Chunk::File));
        for call in delta.tool_calls.into_iter().flat_map(|calls| *calls) {
            self.take_call(call, ready)?;
        }
        Ok(())
    }

    /// Only the first delta of a call has a name. Servers that number all their calls 0 are told apart by id.
    fn take_call(&mut self, delta: CallDelta<'_>, ready: &mut Vec<Chunk>) -> Result<(), ModelFault> {
        let function = delta.function.unwrap_or(FunctionDelta { name: None, arguments: None });
        let name = function.name.as_ref().map_or("", BorrowedText::as_ref);
        let id = delta.id.as_ref().map(BorrowedText::as_ref).filter(|id| !id.is_empty());
        let known = self.calls.find(delta.index);
        let is_another = |index| !name.is_empty() && id.is_some() && self.calls.id(index) != id;
        let index = match known {
            Some(index) if !is_another(index) => index,
            _ => self.calls.begin(delta.index, id, name, None, ready)?,
        };
        let arguments = match function.arguments {
            Some(Value::String(text)) => text,
            Some(Value::Null) | None => String::new(),
            Some(object) => object.to_string(),
        };
        self.calls.arguments(index, arguments, ready);
        Ok(())
    }

    fn complete(&mut self, finish: Finish, ready: &mut Vec<Chunk>) -> Finish {
        self.calls.complete(ready);
        // Some servers stop where others call tools.
        match finish {
            Finish::Stop | Finish::Other if !self.calls.is_empty() => Finish::ToolCalls,
            finish => finish,
        }
    }
}

impl Decode for OpenAiDecoder {
    fn frame(&mut self, frame: Frame<'_>, ready: &mut Vec<Chunk>) -> Result<Option<Finish>, ModelFault> {
        if frame.name.is_empty()
            && let Some(text) = self.template.text(frame.data)
        {
            say_text(text, ready);
            return Ok(None);
        }
        match frame.data.trim() {
            "" => return Ok(None),
            "[DONE]" => return self.end(ready).map(Some),
            _ => {}
        }
        let completion: Completion<'_> =
            serde_json::from_str(frame.data).map_err(|e| ModelFault::not_json(&e))?;
        if let Some(error) = completion.error {
            return Err(ModelFault::from_error(&error));
        }
        if frame.name == "error" || completion.message.is_some() {
            return Err(ModelFault::from_body(None, frame.data));
        }
        if let Some(text) = completion.only_text() {
            self.template.learn(frame.data, text);
        }
        for choice in completion.choices.into_iter().flatten() {
            if let Some(delta) = choice.delta {
                self.take_delta(delta, ready)?;
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.0.is_empty()) {
                self.finish = Some(finish(&reason.0));
            }
        }
        ready.extend(completion.usage.map(|usage| Chunk::Tokens(tokens(&usage))));
        Ok(None)
    }

    fn end(&mut self, ready: &mut Vec<Chunk>) -> Result<Finish, ModelFault> {
        let finish = self.finish.ok_or_else(ModelFault::cut)?;
        Ok(self.complete(finish, ready))
    }
}

/// Adds a text, joined with the one before it if both arrived together.
fn say_text(text: &str, ready: &mut Vec<Chunk>) {
    match ready.last_mut() {
        Some(Chunk::Text(before)) => before.push_str(text),
        _ => ready.push(Chunk::Text(text.to_owned())),
    }
}

fn say(text: Option<BorrowedText<'_>>, chunk: fn(String) -> Chunk, ready: &mut Vec<Chunk>) {
    ready.extend(text.filter(|text| !text.0.is_empty()).map(|text| chunk(text.into_string())));
}

fn take_piece(piece: ReasoningPiece<'_>, ready: &mut Vec<Chunk>) {
    for thought in piece.thinking.into_iter().flatten() {
        say(thought.text, Chunk::Reasoning, ready);
    }
    say(piece.text, Chunk::Text, ready);
    ready.extend(piece.image_url.and_then(|image| data_url(&image.url)).map(Chunk::File));
}

fn finish(reason: &str) -> Finish {
    match reason {
        "stop" => Finish::Stop,
        "tool_calls" | "function_call" => Finish::ToolCalls,
        "length" => Finish::Length,
        "content_filter" => Finish::ContentFilter,
        _ => Finish::Other,
    }
}

fn tokens(usage: &OpenAiUsage) -> Tokens {
    let cached = usage.prompt_tokens_details.as_ref().and_then(|details| details.cached);
    let written = usage.prompt_tokens_details.as_ref().and_then(|details| details.written);
    let reasoning = usage.completion_tokens_details.as_ref().and_then(|details| details.reasoning);
    Tokens {
        input_tokens: usage.prompt_tokens.unwrap_or(0),
        output_tokens: usage.completion_tokens.unwrap_or(0),
        cached_tokens: cached.or(usage.prompt_cache_hit_tokens).unwrap_or(0),
        cache_write_tokens: written.unwrap_or(0),
        reasoning_tokens: reasoning.unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame_text() -> impl Strategy<Value = String> {
        let content = prop_oneof![
            "[ -~äß😀]{0,6}".prop_map(|text| Value::String(text).to_string()),
            Just("null".to_owned()),
            Just(r#""broken"#.to_owned()),
            Just("\"\t\"".to_owned()),
        ];
        let rest = prop_oneof![
            4 => Just(String::new()),
            1 => Just(r#","refusal":"no""#.to_owned()),
            1 => Just(r#","reasoning":"so""#.to_owned()),
            1 => Just(r#","tool_calls":[{"index":0,"id":"c","function":{"name":"now","arguments":"{}"}}]"#.to_owned()),
        ];
        let end = prop_oneof![
            4 => Just(r#""finish_reason":null}]"#.to_owned()),
            1 => Just(r#""finish_reason":"stop"}]"#.to_owned()),
            1 => Just(r#""finish_reason":null}],"usage":{"prompt_tokens":1}"#.to_owned()),
        ];
        (content, rest, end).prop_map(|(content, rest, end)| {
            format!(r#"{{"id":"x","choices":[{{"index":0,"delta":{{"content":{content}{rest}}},{end}}}"#)
        })
    }

    /// The chunks of a frame, texts joined, as a decoder without any frame before reads it.
    fn alone(frame: &str) -> Result<Vec<Chunk>, ModelFault> {
        let mut ready = Vec::new();
        OpenAiDecoder::new(ToolNames::default()).frame(Frame { name: "", data: frame }, &mut ready)?;
        Ok(ready)
    }

    proptest! {
        /// Whatever came before it, a frame is read as if it were alone.
        #[test]
        fn frames_read_the_same_after_others(frames in prop::collection::vec(frame_text(), 1..8)) {
            let mut decoder = OpenAiDecoder::new(ToolNames::default());
            for frame in &frames {
                let mut ready = Vec::new();
                let read = decoder.frame(Frame { name: "", data: frame }, &mut ready).map(|_| ready);
                // Calls are numbered on from the ones before.
                let texts = |read: Result<Vec<Chunk>, ModelFault>| {
                    read.map(|all| all.into_iter().filter(|one| !matches!(one, Chunk::Call { .. } | Chunk::Arguments { .. })).collect::<Vec<_>>())
                };
                prop_assert_eq!(texts(read), texts(alone(frame)), "{}", frame);
            }
        }
    }

    #[test]
    fn the_text_of_a_delta_is_borrowed_until_it_is_a_chunk() {
        let frame = r#"{"id":"x","choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}"#;
        let completion: Completion<'_> = serde_json::from_str(frame).unwrap();
        let delta = completion.choices.into_iter().flatten().next().and_then(|choice| choice.delta);
        assert!(matches!(
            delta.and_then(|delta| delta.content),
            Some(OpenAiReplyContent::Text(BorrowedText(Cow::Borrowed("Hello"))))
        ));
    }
}
