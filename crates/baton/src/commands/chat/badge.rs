//! How agents are called and coloured on a terminal.

use anstyle::{Ansi256Color, AnsiColor, Color, RgbColor, Style};
use baton_agui::AgentProfiles;
use baton_core::AgentName;

use crate::report::table::line;

/// The sign of an agent with its name, in its colour. Colours are always written; the stream drops them where they are not wanted.
pub(super) fn badge(profiles: &AgentProfiles, agent: &AgentName) -> String {
    let style = style(profiles, agent).bold();
    format!("{style}● {}{style:#}", name(profiles, agent))
}

pub(super) fn name(profiles: &AgentProfiles, agent: &AgentName) -> String {
    line(profiles.name_of(agent))
}

fn style(profiles: &AgentProfiles, agent: &AgentName) -> Style {
    let color = profiles.get(agent).and_then(|face| face.color.as_deref()).and_then(color);
    Style::new().fg_color(color)
}

/// As agent files write colours: `#ea580c`, or a word.
fn color(text: &str) -> Option<Color> {
    match text.strip_prefix('#') {
        Some(digits) => rgb(digits).map(|rgb| if is_exact() { rgb.into() } else { nearest(rgb).into() }),
        None => named(&text.trim().to_lowercase()),
    }
}

fn rgb(digits: &str) -> Option<RgbColor> {
    let number = u32::from_str_radix(digits, 16).ok()?;
    match digits.len() {
        6 => Some(number),
        // Each digit stands for two.
        3 => Some(((number & 0xf00) << 8 | (number & 0xf0) << 4 | number & 0xf) * 0x11),
        _ => None,
    }
    .map(|number| {
        let [_, red, green, blue] = number.to_be_bytes();
        RgbColor(red, green, blue)
    })
}

/// Whether the terminal says that it has all colours.
fn is_exact() -> bool {
    std::env::var("COLORTERM").is_ok_and(|value| matches!(value.as_str(), "truecolor" | "24bit"))
}

/// The cube of 6 × 6 × 6 colours that nearly every terminal has.
fn nearest(RgbColor(red, green, blue): RgbColor) -> Ansi256Color {
    let level = |value: u8| match value {
        0..48 => 0,
        48..115 => 1,
        _ => (value - 35) / 40,
    };
    Ansi256Color(16 + 36 * level(red) + 6 * level(green) + level(blue))
}

fn named(word: &str) -> Option<Color> {
    Some(match word {
        "red" => AnsiColor::Red.into(),
        "green" => AnsiColor::Green.into(),
        "yellow" => AnsiColor::Yellow.into(),
        "blue" => AnsiColor::Blue.into(),
        "magenta" => AnsiColor::Magenta.into(),
        "cyan" | "teal" => AnsiColor::Cyan.into(),
        "gray" | "grey" => AnsiColor::BrightBlack.into(),
        "white" => AnsiColor::White.into(),
        "orange" => Ansi256Color(208).into(),
        "pink" => Ansi256Color(205).into(),
        "purple" | "violet" => Ansi256Color(99).into(),
        "brown" => Ansi256Color(130).into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_of_agent_files() {
        assert_eq!(rgb("ea580c"), Some(RgbColor(0xea, 0x58, 0x0c)));
        assert_eq!(rgb("f80"), Some(RgbColor(0xff, 0x88, 0x00)));
        assert_eq!((rgb("ea58"), rgb("xyzxyz"), color("#"), color("mauve")), (None, None, None, None));
        assert_eq!(nearest(RgbColor(0xff, 0x88, 0)), Ansi256Color(208));
        assert_eq!(color("Orange"), Some(Ansi256Color(208).into()));
    }
}
