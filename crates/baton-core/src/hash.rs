//! FNV-1a: a fast hash, stable across machines and versions. Not cryptographic.

/// FNV-1a with 32 bits.
pub fn fnv1a_32(bytes: impl AsRef<[u8]>) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.as_ref().iter().fold(0x811c_9dc5, step)
}

/// FNV-1a with 64 bits.
pub fn fnv1a_64(bytes: impl AsRef<[u8]>) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.as_ref().iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the reference implementation. Stored ids depend on them.
    #[test]
    fn hashes_are_those_of_the_reference() {
        assert_eq!((fnv1a_32(""), fnv1a_64("")), (0x811c_9dc5, 0xcbf2_9ce4_8422_2325));
        assert_eq!((fnv1a_32("foobar"), fnv1a_64("foobar")), (0xbf9c_f968, 0x8594_4171_f739_67e8));
    }
}
