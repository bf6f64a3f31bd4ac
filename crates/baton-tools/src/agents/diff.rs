//! The difference between two short texts, line by line.

/// Lines of either text beyond which everything is shown as replaced: the table of the comparison has their product.
const MAX_LINES: usize = 1_000;
/// Unchanged lines that are shown around a change.
const CONTEXT: usize = 2;

/// The lines of `after` with `+`, those of `before` that are gone with `-`, and a few unchanged ones around them. Empty if both are
/// equal.
pub fn diff(before: &str, after: &str) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let lines = compare(&before, &after);
    let is_change = |at: usize| lines.get(at).is_some_and(|(mark, _)| *mark != ' ');
    let is_near = |at: usize| (at.saturating_sub(CONTEXT)..=at + CONTEXT).any(is_change);
    let mut text = String::new();
    let mut was_near = true;
    for (at, (mark, line)) in lines.iter().enumerate() {
        if is_near(at) {
            text += &format!("{mark}{}{line}\n", if line.is_empty() { "" } else { " " });
        } else if was_near && lines.iter().any(|(mark, _)| *mark != ' ') {
            text += "…\n";
        }
        was_near = is_near(at);
    }
    text
}

/// All lines of both texts, each with `+`, `-` or a space, by the longest common subsequence.
fn compare<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<(char, &'a str)> {
    if before.len() > MAX_LINES || after.len() > MAX_LINES {
        let removed = before.iter().map(|line| ('-', *line));
        return removed.chain(after.iter().map(|line| ('+', *line))).collect();
    }
    let width = after.len() + 1;
    let mut common = vec![0_u32; (before.len() + 1) * width];
    for i in (0..before.len()).rev() {
        for j in (0..after.len()).rev() {
            common[i * width + j] = if before[i] == after[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < before.len() || j < after.len() {
        if i < before.len() && j < after.len() && before[i] == after[j] {
            lines.push((' ', before[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == after.len()
            || (i < before.len() && common[(i + 1) * width + j] >= common[i * width + j + 1])
        {
            lines.push(('-', before[i]));
            i += 1;
        } else {
            lines.push(('+', after[j]));
            j += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k2_diff_shows_what_is_added_and_removed() {
        assert_eq!(diff("a\nb\n", "a\nb\n"), "");
        assert_eq!(diff("", "a\n\nb\n"), "+ a\n+\n+ b\n");
        assert_eq!(diff("a\nb\nc\n", "a\nx\nc\n"), "  a\n- b\n+ x\n  c\n");
        let many: String = (0..20).map(|n| format!("{n}\n")).collect();
        assert_eq!(diff(&many, &many.replace("10\n", "ten\n")), "…\n  8\n  9\n- 10\n+ ten\n  11\n  12\n…\n");
    }

    #[test]
    fn long_texts_are_not_compared() {
        let long = "x\n".repeat(MAX_LINES + 1);
        assert_eq!(diff(&long, "y\n").lines().count(), MAX_LINES + 2);
    }
}
