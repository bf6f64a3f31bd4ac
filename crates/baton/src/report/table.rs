//! Rows under aligned heads. Whatever is put into them stays on its line: what came from people and models may hold anything.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use super::visible;

/// What the last column gets at least, however narrow the terminal is, and at most where there is no terminal.
const LEAST: usize = 12;
const MOST: usize = 80;
/// Of an id where there is no room for all of it. Enough to name a run: its first 12 digits are the millisecond it began in.
const SHORT_ID: usize = 13;
const GAP: &str = "  ";

/// A head, and how the cells below it are written.
#[derive(Debug, Clone, Copy)]
pub enum Column {
    /// Shortened where there is no room.
    Id(&'static str),
    /// Left-aligned. As the last column it takes the room that is left, and what does not fit is cut.
    Text(&'static str),
    /// Right-aligned.
    Number(&'static str),
    /// The same, left out where there is no room.
    Spare(&'static str),
}

impl Column {
    fn head(self) -> &'static str {
        match self {
            Self::Id(head) | Self::Text(head) | Self::Number(head) | Self::Spare(head) => head,
        }
    }

    fn pad(self, cell: &str, width: usize) -> String {
        match self {
            Self::Id(_) | Self::Text(_) => format!("{cell:width$}"),
            Self::Number(_) | Self::Spare(_) => format!("{cell:>width$}"),
        }
    }
}

#[derive(Debug)]
pub struct Table<const N: usize> {
    columns: [Column; N],
    rows: Vec<[String; N]>,
    /// There is no room for what is spare.
    is_tight: bool,
}

impl<const N: usize> Table<N> {
    pub fn new(columns: [Column; N]) -> Self {
        Self { columns, rows: Vec::new(), is_tight: false }
    }

    pub fn add(&mut self, row: [String; N]) {
        self.rows.push(row.map(|cell| line(&cell)));
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// For the terminal that stdout is, or for a pipe.
    pub fn print(self) -> String {
        self.render(width_of(&std::io::stdout()))
    }

    fn render(mut self, width: Option<usize>) -> String {
        if width.is_some_and(|width| self.fixed() + LEAST > width) {
            self.shorten_ids();
        }
        self.is_tight = width.is_some_and(|width| self.fixed() + LEAST > width);
        if let (Some(Column::Text(_)), Some(last)) = (self.columns.last(), N.checked_sub(1)) {
            let room = width.map_or(MOST, |width| width.saturating_sub(self.fixed()).max(LEAST));
            for row in &mut self.rows {
                row[last] = cut(&row[last], room);
            }
        }
        let dim = anstyle::Style::new().dimmed();
        let head = self.columns.map(|column| column.head().to_owned());
        let widths: [usize; N] = std::array::from_fn(|at| self.width(at));
        let rows = self.rows.iter().map(|row| self.line(row, widths) + "\n");
        format!("{dim}{}{dim:#}\n", self.line(&head, widths)) + &rows.collect::<String>()
    }

    fn shorten_ids(&mut self) {
        for at in (0..N).filter(|at| matches!(self.columns[*at], Column::Id(_))) {
            // What begins with a branch is not an id as a whole, and has no more than it needs.
            let is_id = |cell: &str| cell.starts_with(|c: char| c.is_ascii_hexdigit());
            for row in self.rows.iter_mut().filter(|row| is_id(&row[at])) {
                row[at] = row[at].chars().take(SHORT_ID).collect();
            }
        }
    }

    /// Columns of the screen that are taken before the last one begins.
    fn fixed(&self) -> usize {
        let before = (0..N.saturating_sub(1)).filter(|at| self.is_shown(*at));
        before.map(|at| self.width(at) + GAP.len()).sum()
    }

    fn is_shown(&self, at: usize) -> bool {
        !(self.is_tight && matches!(self.columns[at], Column::Spare(_)))
    }

    fn width(&self, at: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[at].chars().count());
        cells.chain([self.columns[at].head().len()]).max().unwrap_or(0)
    }

    fn line(&self, cells: &[String; N], widths: [usize; N]) -> String {
        let padded =
            (0..N).filter(|at| self.is_shown(*at)).map(|at| self.columns[at].pad(&cells[at], widths[at]));
        padded.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    }
}

/// Names and values below each other, as for one thing that is shown.
pub fn facts(facts: &[(&str, String)]) -> String {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let dim = anstyle::Style::new().dimmed();
    let fact = |(name, value): &(&str, String)| format!("{dim}{name:width$}{dim:#}  {}\n", line(value));
    facts.iter().map(fact).collect()
}

/// Text on one line, harmless to a terminal. What it begins with may be the branch of a tree and stays.
pub fn line(text: &str) -> String {
    let mut lines = text.split(['\n', '\t', '\r']);
    let first = lines.next().unwrap_or_default().trim_end();
    let rest = lines.map(str::trim).filter(|line| !line.is_empty());
    visible(&std::iter::once(first).chain(rest).collect::<Vec<_>>().join(" "))
}

/// At most `room` columns, with a `…` where something is missing.
pub fn cut(text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    let mut taken = 1;
    let fits = |c: &char| {
        taken += columns(c.encode_utf8(&mut [0; 4]));
        taken <= room
    };
    text.chars().take_while(fits).collect::<String>().trim_end().to_owned() + "…"
}

/// What a text takes on a screen at most: nothing is wider than two columns, and below these letters nothing is wider than one.
fn columns(text: &str) -> usize {
    text.chars().map(|c| if c < '\u{1100}' || ('\u{2000}'..'\u{2600}').contains(&c) { 1 } else { 2 }).sum()
}

/// Columns of the terminal that this is, if it is one.
pub fn width_of(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table<3> {
        let mut table = Table::new([Column::Id("run"), Column::Number("tokens"), Column::Text("answer")]);
        let id = |end: &str| format!("019a8c2f-1b3c-7000-8000-0000000000{end}");
        table.add([id("01"), "7".into(), "All is well, and it will stay like this for a long time.".into()]);
        table.add([id("02"), "12345".into(), "two\n\n lines and a \u{1b}[31mcolour".into()]);
        table
    }

    #[test]
    fn a_pipe_gets_whole_ids_and_single_lines() {
        let text = anstream::adapter::strip_str(&table().render(None)).to_string();
        insta::assert_snapshot!(text, @r"
        run                                   tokens  answer
        019a8c2f-1b3c-7000-8000-000000000001       7  All is well, and it will stay like this for a long time.
        019a8c2f-1b3c-7000-8000-000000000002   12345  two lines and a \u{1b}[31mcolour
        ");
    }

    #[test]
    fn a_terminal_gets_what_fits() {
        for width in [40, 60, 80, 100] {
            let text = anstream::adapter::strip_str(&table().render(Some(width))).to_string();
            assert!(text.lines().all(|line| columns(line) <= width), "{width}:\n{text}");
        }
        let narrow = anstream::adapter::strip_str(&table().render(Some(40))).to_string();
        assert!(narrow.contains("019a8c2f-1b3c       7  All is well, and…\n"), "{narrow}");
    }

    #[test]
    fn wide_letters_count_twice() {
        assert_eq!(cut("日本語の題名", 7), "日本語…");
        assert_eq!(cut("short", 5), "short");
    }

    #[test]
    fn what_is_spare_goes_before_anything_breaks() {
        let table = || {
            let mut table = Table::new([Column::Id("run"), Column::Spare("own"), Column::Text("what")]);
            table.add(["01890a5d-ac96-774b-bcce-b302099a8057".into(), "12345".into(), "x".repeat(20)]);
            table.add(["└── sub_legal_0000001".into(), "1".into(), "y".into()]);
            table
        };
        let wide = anstream::adapter::strip_str(&table().render(Some(80))).to_string();
        assert!(wide.contains("own") && wide.contains("b302099a8057  12345  xxxx"), "{wide}");
        let narrow = anstream::adapter::strip_str(&table().render(Some(36))).to_string();
        let lines: Vec<&str> = narrow.lines().collect();
        assert_eq!(lines[1], "01890a5d-ac96          xxxxxxxxxxxx…");
        assert!(!narrow.contains("own") && lines[2].starts_with("└── sub_legal_0000001  y"), "{narrow}");
    }
}
