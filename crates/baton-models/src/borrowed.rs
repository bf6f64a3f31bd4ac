//! Pieces of a frame that are read without copying them.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// A string of a frame. Borrowed, unless it holds an escape. (`Option<Cow<str>>` is always owned: serde borrows only a
/// bare `Cow`.)
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BorrowedText<'a>(pub Cow<'a, str>);

impl BorrowedText<'_> {
    pub fn into_string(self) -> String {
        self.0.into_owned()
    }
}

impl AsRef<str> for BorrowedText<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for BorrowedText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = BorrowedText<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<BorrowedText<'de>, E> {
        Ok(BorrowedText(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<BorrowedText<'de>, E> {
        Ok(BorrowedText(Cow::Owned(text.to_owned())))
    }
}

/// A list that mostly has one item, which is kept in place.
#[derive(Debug)]
pub(crate) struct Few<T> {
    first: Option<T>,
    others: Vec<T>,
}

impl<T> Few<T> {
    /// The item of a list that has exactly one.
    pub fn only(&self) -> Option<&T> {
        self.first.as_ref().filter(|_| self.others.is_empty())
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.others)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(FewVisitor(PhantomData))
    }
}

struct FewVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FewVisitor<T> {
    type Value = Few<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Few<T>, A::Error> {
        let first = items.next_element()?;
        let mut others = Vec::new();
        while let Some(item) = items.next_element()? {
            others.push(item);
        }
        Ok(Few { first, others })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_borrowed_unless_they_hold_an_escape() {
        let read = |json| serde_json::from_str::<Option<BorrowedText<'_>>>(json).unwrap();
        assert!(matches!(read(r#""plain ä""#), Some(BorrowedText(Cow::Borrowed("plain ä")))));
        assert_eq!(read(r#""a\nb""#), Some(BorrowedText("a\nb".into())));
        assert_eq!(read("null"), None);
        assert!(serde_json::from_str::<BorrowedText<'_>>("7").is_err());
    }

    #[test]
    fn lists_keep_their_order() {
        let read = |json| serde_json::from_str::<Few<u8>>(json).unwrap().into_iter().collect::<Vec<_>>();
        assert!(read("[]").is_empty());
        assert_eq!(read("[1]"), [1]);
        assert_eq!(read("[1, 2, 3]"), [1, 2, 3]);
    }
}
