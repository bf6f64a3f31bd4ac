//! Which addresses belong to the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// False for everything that a server can reach and a stranger cannot: its own machine, its network, the metadata
/// service of its cloud; and for all that is reserved.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_special = match address.octets() {
        // This network, private, loopback; multicast, reserved, broadcast.
        [0 | 10 | 127 | 224..=255, ..] => true,
        // Carrier-grade NAT, link-local with cloud metadata, private.
        [first, second, ..]
            if matches!((first, second), (100, 64..=127) | (169, 254) | (172, 16..=31) | (192, 168)) =>
        {
            true
        }
        // Protocol assignments, documentation, old 6to4 relays, benchmarks.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18..=19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => {
            true
        }
        _ => false,
    };
    // The metadata service of one large cloud has an address that looks public.
    !is_special && address != Ipv4Addr::new(168, 63, 129, 16)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // NAT64 leads to the IPv4 address in its last half.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            is_public_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
        }
        // Teredo and other protocol assignments, documentation, 6to4.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // Only this eighth of the space is given out. All else is loopback, mapped IPv4, local, multicast or unused.
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_and_not() {
        let public = "1.1.1.1 8.8.8.8 93.184.216.34 100.63.0.1 100.128.0.1 172.15.0.1 172.32.0.1 192.0.1.1 198.17.0.1 \
                      223.255.255.255 2606:4700:4700::1111 2a00:1450:4001::1 64:ff9b::808:808";
        for address in public.split(' ') {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        let other = "0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.255.0.1 169.254.169.254 \
                     169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 \
                     198.51.100.1 203.0.113.9 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 168.63.129.16 :: ::1 \
                     ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::127.0.0.1 fe80::1 fec0::1 fc00::1 fd00:ec2::254 ff02::1 2001::1 \
                     2001:db8::1 2002:7f00:1:: 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 100::1 3fff::1 5f00::1";
        for address in other.split(' ') {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }
}
