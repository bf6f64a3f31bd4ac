//! Parents and children with box characters.

/// What stands before an entry. `lasts` says for the entry and each of its ancestors below the root, outermost first, whether it
/// is the last child of its parent.
pub fn branch(lasts: &[bool]) -> String {
    let Some((own, above)) = lasts.split_last() else { return String::new() };
    let above = above.iter().map(|is_last| if *is_last { "    " } else { "│   " });
    above.collect::<String>() + if *own { "└── " } else { "├── " }
}

/// `lasts` for the child at `at` of `count`.
pub fn below(lasts: &[bool], at: usize, count: usize) -> Vec<bool> {
    [lasts, &[at + 1 == count]].concat()
}
