use super::group_commit::{GroupCommit, padded};
use crate::base::{Error, Zxid};
use crate::io::{Buffer, Completion};

/// What a completion made durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Progress {
    /// Groups `first_batch..end_batch` are acknowledged now.
    pub(crate) first_batch: u64,
    pub(crate) end_batch: u64,
    pub(crate) durable_zxid: Zxid,
    pub(crate) records: u64,
}

impl GroupCommit {
    /// Takes in that a write ended. Returns what is acknowledged by it.
    ///
    /// The first failure is kept; nothing is acknowledged after it, not even what was written before it and
    /// answers later, since its order behind the failed group can no longer be kept.
    pub(crate) fn complete(&mut self, completion: Completion, now_ns: u64) -> Option<Progress> {
        let (batch, is_seal) = (completion.tag / 2, completion.tag % 2 == 1);
        if !is_seal {
            self.take_back(completion.buffer);
        }
        if let Err(source) = completion.result
            && !crate::planted("failed_write_ignored")
        {
            self.fail(Error::io("write a group to the log", source));
        }
        let front = self.flights.front()?.batch;
        let early = crate::planted("acknowledged_out_of_order") || crate::planted("acknowledged_before_seal");
        if early && batch < front {
            return None;
        }
        let at = usize::try_from(batch - front).expect("few groups are under way");
        let flight = &mut self.flights[at];
        if crate::planted("acknowledged_before_seal") && flight.parts_left == 0 {
            return None;
        }
        assert!(flight.batch == batch && flight.parts_left > 0, "each write is answered once");
        flight.parts_left -= 1;
        if self.failure.is_some() { None } else { self.acknowledge(now_ns) }
    }

    fn take_back(&mut self, buffer: Buffer) {
        let usual = padded(self.bounds.group_bytes_max);
        // A large record's buffer is not kept: memory stays within the stated formula.
        let kept = if buffer.capacity() > usual { Buffer::with_capacity(usual) } else { buffer };
        self.spare.push(kept);
    }

    fn acknowledge(&mut self, now_ns: u64) -> Option<Progress> {
        let first_batch = self.flights.front()?.batch;
        let mut end_batch = first_batch;
        let mut records = 0;
        while let Some(flight) =
            self.flights.front().filter(|f| f.parts_left == 0 || crate::planted("acknowledged_out_of_order"))
        {
            assert!(
                flight.last_zxid >= self.durable && flight.last_zxid <= self.logged,
                "the watermark rises"
            );
            self.durable = flight.last_zxid;
            self.proven = self.proven.max(flight.claims);
            records += u64::from(flight.records);
            end_batch = flight.batch + 1;
            self.flights.pop_front();
        }
        if end_batch == first_batch {
            return None;
        }
        let released = u32::try_from(records).unwrap_or(u32::MAX);
        self.policy.released(released, self.forming.count, now_ns);
        Some(Progress { first_batch, end_batch, durable_zxid: self.durable, records })
    }
}
