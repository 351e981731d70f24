use std::net::Ipv6Addr;

/// The addresses that the id of an `ip` entry names: one, or all that begin with the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct IpRange {
    address: Address,
    bits: u32,
}

/// The bytes of an IPv4 address, or of an IPv6 one, from the top of the number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Address {
    V4(u32),
    V6(u128),
}

impl IpRange {
    /// Reads `address` or `address/bits`. `None` if it is neither.
    ///
    /// Source: ZooKeeper's `IPAuthenticationProvider`; as there, a part of an IPv4 address may have leading zeros.
    pub(super) fn parse(id: &str) -> Option<IpRange> {
        let (address, bits) = match id.split_once('/') {
            Some((address, bits)) => (Address::parse(address)?, Some(bits.parse::<u32>().ok()?)),
            None => (Address::parse(id)?, None),
        };
        let bits_max = match address {
            Address::V4(_) => u32::BITS,
            Address::V6(_) => u128::BITS,
        };
        let bits = bits.unwrap_or(bits_max);
        (bits <= bits_max).then_some(IpRange { address, bits })
    }

    /// Whether an address is among them. What is no address is not.
    pub(super) fn contains(self, address: &str) -> bool {
        match (self.address, Address::parse(address)) {
            // A shift by all bits is none: it leaves nothing to compare.
            (Address::V4(range), Some(Address::V4(address))) => {
                (range ^ address).checked_shr(u32::BITS - self.bits).unwrap_or(0) == 0
            }
            (Address::V6(range), Some(Address::V6(address))) => {
                (range ^ address).checked_shr(u128::BITS - self.bits).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl Address {
    fn parse(text: &str) -> Option<Address> {
        if text.contains(':') {
            return text.parse::<Ipv6Addr>().ok().map(|address| Address::V6(address.to_bits()));
        }
        let mut parts = text.split('.').map(|part| part.parse::<u8>().ok());
        let mut next = || parts.next().flatten();
        let bytes = [next()?, next()?, next()?, next()?];
        parts.next().is_none().then_some(Address::V4(u32::from_be_bytes(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(range: &str, address: &str) -> bool {
        IpRange::parse(range).is_some_and(|range| range.contains(address))
    }

    #[test]
    fn addresses_are_compared_by_their_first_bits() {
        for (range, address, expected) in [
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false),
            ("010.0.0.1", "10.0.0.1", true),
            ("10.0.0.1/8", "10.255.3.4", true),
            ("10.0.0.1/8", "11.0.0.1", false),
            ("10.0.0.128/25", "10.0.0.127", false),
            ("10.0.0.128/25", "10.0.0.255", true),
            ("10.0.0.1/0", "192.168.0.1", true),
            ("10.0.0.1/32", "10.0.0.1", true),
            ("10.0.0.1/32", "10.0.0.0", false),
            ("::1", "0:0:0:0:0:0:0:1", true),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/33", "2001:db8:ffff::1", false),
            ("2001:db8::/0", "::1", true),
            ("::/0", "1.2.3.4", false),
            ("0.0.0.0/0", "::1", false),
            ("10.0.0.1", "host", false),
            ("10.0.0.1", "", false),
        ] {
            assert_eq!(contains(range, address), expected, "{range} and {address}");
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for id in [
            "",
            "/",
            "/8",
            "10.0.0",
            "10.0.0.1.2",
            "10.0.0.256",
            "10.0.0.-1",
            "10.0.0.",
            "a.b.c.d",
            "10.0.0.1/",
            "10.0.0.1/33",
            "10.0.0.1/-1",
            "10.0.0.1/8/8",
            "10.0.0.1/x",
            "::1/129",
            ":::",
            "1::2::3",
            "[::1]",
            "fe80::1%eth0",
        ] {
            assert_eq!(IpRange::parse(id), None, "{id:?}");
        }
    }
}
