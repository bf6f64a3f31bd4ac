//! Enums with words for their variants: one list for parsing, printing and errors.

/// A closed set of words. Implemented by [`choices!`](crate::choices).
pub trait Choice: Copy + 'static {
    /// Every variant with its canonical spelling, in the order of presentation.
    const ALL: &'static [(&'static str, Self)];

    /// Parses the canonical snake case as well as `camelCase` and `kebab-case`.
    fn parse(text: &str) -> Option<Self> {
        let wanted = snake_case(text);
        Self::ALL.iter().find(|(word, _)| *word == wanted).map(|(_, choice)| *choice)
    }
}

/// Converts to snake case: `terminationMode`, `termination-mode` and `termination_mode` are the same word.
pub fn snake_case(text: &str) -> String {
    let mut snake = String::with_capacity(text.len() + 4);
    let mut previous_is_lower = false;
    for c in text.chars() {
        if c.is_uppercase() && previous_is_lower {
            snake.push('_');
        }
        previous_is_lower = c.is_lowercase() || c.is_ascii_digit();
        match c {
            '-' | ' ' => snake.push('_'),
            _ => snake.extend(c.to_lowercase()),
        }
    }
    snake
}

/// Declares an enum together with the word for each variant.
#[macro_export]
macro_rules! choices {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis enum $name { $($(#[$variant_meta])* $variant,)+ }

        impl $crate::choice::Choice for $name {
            const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$variant),)+];
        }

        impl $name {
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
                <Self as $crate::choice::Choice>::parse(&text).ok_or_else(|| {
                    serde::de::Error::unknown_variant(&text, &[$($word,)+])
                })
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::snake_case;

    #[test]
    fn spellings() {
        for text in ["terminationMode", "termination-mode", "termination_mode", "TerminationMode"] {
            assert_eq!(snake_case(text), "termination_mode");
        }
        assert_eq!(snake_case("top_p"), "top_p");
    }
}
