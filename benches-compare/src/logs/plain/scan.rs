//! Reading a plain log back: large reads, a checksum per record, no allocation per record.

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;

use super::{BLOCK_BYTES, FILE_NAME, frames};
use crate::logs::Recovered;

/// Room for reads; a record must fit in half of it.
const BUFFER_BYTES: usize = 1 << 20;

/// Reads every record of the log in `dir`.
pub fn recover(dir: &Path) -> Recovered {
    let mut file = File::open(dir.join(FILE_NAME)).expect("open the plain log");
    let mut scan =
        Scan { buffer: vec![0; BUFFER_BYTES], filled: 0, offset: 0, recovered: Recovered::default() };
    loop {
        let read = file.read(&mut scan.buffer[scan.filled..]).expect("read the plain log");
        scan.filled += read;
        if scan.take_whole_frames() == End::Reached || read == 0 {
            return scan.recovered;
        }
    }
}

#[derive(Debug)]
struct Scan {
    buffer: Vec<u8>,
    filled: usize,
    /// Where the buffer starts in the file.
    offset: usize,
    recovered: Recovered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Reached,
    NotYet,
}

impl Scan {
    /// Takes the frames that are whole and moves the rest to the front of the buffer. A zero length is
    /// padding up to the next block; at the start of a block it is the end.
    fn take_whole_frames(&mut self) -> End {
        let (mut position, mut end) = (0, End::NotYet);
        while position + frames::HEADER_BYTES <= self.filled {
            let Some(len) = frames::length(&self.buffer[position..]) else {
                let here = self.offset + position;
                if here.is_multiple_of(BLOCK_BYTES) {
                    end = End::Reached;
                    break;
                }
                position = (here.next_multiple_of(BLOCK_BYTES) - self.offset).min(self.filled);
                continue;
            };
            if position + frames::whole_len(len) > self.filled {
                break;
            }
            let payload = frames::checked_payload(&self.buffer[position..], len);
            self.recovered.records += 1;
            self.recovered.bytes += black_box(payload).len() as u64;
            position += frames::whole_len(len);
        }
        self.buffer.copy_within(position..self.filled, 0);
        self.filled -= position;
        self.offset += position;
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::Kind;

    /// Groups of every size come back whole, padded or not.
    #[test]
    fn what_was_committed_is_read_back() {
        for kind in [Kind::PlainDirect, Kind::PlainBuffered] {
            let dir = std::env::current_dir()
                .expect("a current directory")
                .join(format!("data-test-{}", kind.name()));
            std::fs::create_dir_all(&dir).expect("create the test's directory");
            let log = kind.open(&dir, 1 << 20);
            let mut expected = Recovered::default();
            for round in 1..200_usize {
                let record = vec![round as u8; 1 + round * 7];
                let batch = vec![&record[..]; 1 + round % 40];
                log.commit_batch(0, &batch);
                expected.records += batch.len() as u64;
                expected.bytes += (batch.len() * record.len()) as u64;
            }
            assert_eq!(kind.recover(&dir), expected);
            std::fs::remove_dir_all(&dir).expect("remove the test's directory");
        }
    }
}
