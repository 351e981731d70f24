use std::fmt;

use crate::base::Random;

/// The identity of one database, made when its log is created and written into every one of its files.
///
/// A file of another database is refused wherever it turns up, and so is a directory that is not the one
/// the caller expects (see [`LogOptions::expected_database_id`](crate::LogOptions::expected_database_id)).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DatabaseId([u8; 16]);

impl DatabaseId {
    pub(crate) fn random(random: &mut Random) -> DatabaseId {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&random.next_u64().to_le_bytes());
        bytes[8..].copy_from_slice(&random.next_u64().to_le_bytes());
        DatabaseId(bytes)
    }

    /// From its 16 bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> DatabaseId {
        DatabaseId(bytes)
    }

    /// Its 16 bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// From 32 hexadecimal digits, as `Display` writes them. `None` if that is not what it is.
    pub fn parse(text: &str) -> Option<DatabaseId> {
        let digits = text.as_bytes();
        if digits.len() != 32 || !digits.iter().all(|d| matches!(d, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let hex = |d: u8| if d.is_ascii_digit() { d - b'0' } else { d - b'a' + 10 };
            *byte = hex(pair[0]) << 4 | hex(pair[1]);
        }
        Some(DatabaseId(bytes))
    }

    /// The seed of this database's record checksums.
    pub(crate) fn seed(&self) -> u32 {
        crate::base::checksum::crc32(0, &self.0)
    }
}

impl fmt::Display for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips_and_nothing_else_parses() {
        let id = DatabaseId::random(&mut Random::from_seed(1));
        assert_eq!(DatabaseId::parse(&id.to_string()), Some(id));
        for bad in ["", "0", &"A".repeat(32), &"0".repeat(33), &"g".repeat(32)] {
            assert_eq!(DatabaseId::parse(bad), None, "{bad}");
        }
    }
}
