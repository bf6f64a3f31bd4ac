//! The results as text: a line for each group, columns for each variant, and the failures.

use std::collections::BTreeSet;

use crate::report::{Report, Summary};

const HEAD: [&str; 5] = ["passed", "input", "cached", "output", "first token"];

/// The table, the checks by kind and the failures.
pub fn render(reports: &[Report]) -> String {
    let mut rows = vec![titles(reports), head(reports)];
    let groups: BTreeSet<&String> = reports.iter().flat_map(|report| report.groups.keys()).collect();
    let none = Summary::default();
    for group in groups {
        let sums: Vec<&Summary> = reports.iter().map(|one| one.groups.get(group).unwrap_or(&none)).collect();
        rows.push(row(group, &sums));
    }
    rows.push(row("total", &reports.iter().map(|report| &report.total).collect::<Vec<_>>()));
    let failures: String = reports.iter().map(failures).collect();
    format!("{}{failures}", align(&rows))
}

fn titles(reports: &[Report]) -> Vec<String> {
    let mut cells = vec![String::new()];
    for report in reports {
        let title = format!("{} {}", report.model, report.variant);
        cells.extend([title].into_iter().chain(std::iter::repeat_n(String::new(), HEAD.len() - 1)));
    }
    cells
}

fn head(reports: &[Report]) -> Vec<String> {
    let mut cells = vec!["group".to_owned()];
    cells.extend(reports.iter().flat_map(|_| HEAD.map(str::to_owned)));
    if reports.len() == 2 {
        cells.extend(["± passed", "± input", "± first token"].map(str::to_owned));
    }
    cells
}

fn row(name: &str, sums: &[&Summary]) -> Vec<String> {
    let mut cells = vec![name.to_owned()];
    cells.extend(sums.iter().flat_map(|sum| summary_cells(sum)));
    if let [before, after] = sums {
        cells.extend(difference(before, after));
    }
    cells
}

fn summary_cells(sum: &Summary) -> [String; 5] {
    let cached = (sum.cached_tokens * 100).checked_div(sum.input_tokens);
    [
        format!("{}/{}", sum.score.passed, sum.score.of),
        sum.input_tokens.to_string(),
        cached.map_or("-".to_owned(), |share| format!("{share} %")),
        sum.output_tokens.to_string(),
        sum.first_token_ms.map_or("-".to_owned(), seconds),
    ]
}

fn difference(before: &Summary, after: &Summary) -> [String; 3] {
    let passed = i64::from(after.score.passed) - i64::from(before.score.passed);
    let input = i128::from(after.input_tokens) - i128::from(before.input_tokens);
    let wait = before.first_token_ms.zip(after.first_token_ms).map(|(before, after)| {
        let sign = if after < before { '-' } else { '+' };
        format!("{sign}{}", seconds(after.abs_diff(before)))
    });
    [format!("{passed:+}"), format!("{input:+}"), wait.unwrap_or("-".to_owned())]
}

fn seconds(millis: u64) -> String {
    format!("{}.{:02} s", millis / 1000, millis % 1000 / 10)
}

/// Pads the cells of each column to the same width: names to the right, numbers to the left.
fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    // The titles span the columns of their report.
    let cells = |at: usize| rows.iter().skip(1).filter_map(move |row| row.get(at));
    let width = |at: usize| cells(at).map(|cell| cell.chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = title_line(&rows[0], &widths);
    for row in &rows[1..] {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            let width = widths[at];
            line += &if at == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn title_line(titles: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    let mut start = 0;
    for (title, width) in titles.iter().zip(widths) {
        if !title.is_empty() {
            let used = line.chars().count();
            line += &" ".repeat((start + 2usize).saturating_sub(used).max(usize::from(used > 0)));
            line += title;
        }
        start += width + if start == 0 { 0 } else { 2 };
    }
    format!("{}\n", line.trim_end())
}

fn failures(report: &Report) -> String {
    let failed: Vec<_> = report.cases.iter().filter(|case| !case.passed).collect();
    if failed.is_empty() {
        return String::new();
    }
    let mut text = format!("\nfailed with {}:\n", report.variant);
    for (group, sum) in report.groups.iter().filter(|(_, sum)| sum.score.passed < sum.score.of) {
        let missed = sum.checks.iter().filter(|(_, score)| score.passed < score.of);
        let missed: Vec<String> =
            missed.map(|(kind, score)| format!("{kind} {}/{}", score.passed, score.of)).collect();
        text += &format!("  {group}: {}\n", missed.join(", "));
    }
    for case in failed {
        text += &case.explanation();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Score;

    fn report(variant: &str, passed: u32, input_tokens: u64, first_token_ms: Option<u64>) -> Report {
        let sum = Summary {
            score: Score { passed, of: 15 },
            input_tokens,
            cached_tokens: input_tokens / 4,
            output_tokens: 90,
            first_token_ms,
            ..Summary::default()
        };
        let mut report = Report::new("m", variant, 0.0);
        report.groups.insert("routing".to_owned(), sum.clone());
        report.total = sum;
        report
    }

    #[test]
    fn two_variants_are_side_by_side() {
        let reports = [report("agents", 12, 20_000, Some(6_640)), report("shorter", 14, 8_000, Some(1_200))];
        let expected = [
            "         m agents                                    m shorter",
            "group    passed  input  cached  output  first token  passed  input  cached  output  first token  \
             ± passed  ± input  ± first token",
            "routing   12/15  20000    25 %      90       6.64 s   14/15   8000    25 %      90       1.20 s  \
             \x20     +2   -12000        -5.44 s",
            "total     12/15  20000    25 %      90       6.64 s   14/15   8000    25 %      90       1.20 s  \
             \x20     +2   -12000        -5.44 s",
        ];
        assert_eq!(render(&reports).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn missing_numbers_are_dashes() {
        let text = render(&[report("agents", 0, 0, None)]);
        assert!(text.ends_with("total      0/15      0       -      90            -\n"), "{text}");
    }
}
