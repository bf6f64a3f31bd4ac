//! Votes on the end of a discussion.

use baton_core::agent::Quorum;

/// Whether `ready` votes reach the quorum. A quorum larger than the team means the whole team; the minimum is 1.
pub(super) fn is_reached(quorum: Quorum, ready: usize, members: usize) -> bool {
    let needed = match quorum {
        Quorum::All => members,
        Quorum::Majority => members / 2 + 1,
        Quorum::AtLeast(number) => (number as usize).clamp(1, members.max(1)),
    };
    ready >= needed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E37
    #[test]
    fn a_majority_is_more_than_half() {
        assert!(is_reached(Quorum::All, 3, 3) && !is_reached(Quorum::All, 2, 3));
        assert!(is_reached(Quorum::Majority, 2, 3) && !is_reached(Quorum::Majority, 2, 4));
        assert!(is_reached(Quorum::AtLeast(2), 2, 5) && !is_reached(Quorum::AtLeast(2), 1, 5));
        assert!(is_reached(Quorum::AtLeast(9), 2, 2));
        assert!(!is_reached(Quorum::AtLeast(0), 0, 2), "somebody has to be ready");
    }
}
