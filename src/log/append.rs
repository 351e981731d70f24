use crate::base::{Epoch, Result, Zxid, checksum};
use crate::log::commit::Incoming;
use crate::log::engine::Patience;
use crate::log::handle::Log;
use crate::log::read::Record;
use crate::log::ticket::AppendTicket;

impl Log {
    /// Appends one record: ordered when this returns, durable when the ticket says so. Blocks while the
    /// queue before the disk is full.
    ///
    /// # Errors
    /// - [`ErrorKind::Fenced`](crate::ErrorKind::Fenced): the record's epoch is not the log's. Never let in, now or later.
    /// - [`ErrorKind::OutOfOrder`](crate::ErrorKind::OutOfOrder): its zxid does not come after the last one.
    /// - [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge): nothing was written.
    /// - [`ErrorKind::NoSpace`](crate::ErrorKind::NoSpace): there is no room for the next segment; tried again by itself.
    /// - [`ErrorKind::Poisoned`](crate::ErrorKind::Poisoned), [`ErrorKind::Closed`](crate::ErrorKind::Closed).
    pub fn append(&self, record: &Record<'_>) -> Result<AppendTicket> {
        self.append_incoming(&[incoming(record)], Patience::Forever)
    }

    /// The same, but [`ErrorKind::Busy`](crate::ErrorKind::Busy) where [`append`](Log::append) would block.
    ///
    /// # Errors
    /// As [`append`](Log::append), and [`ErrorKind::Busy`](crate::ErrorKind::Busy).
    pub fn try_append(&self, record: &Record<'_>) -> Result<AppendTicket> {
        self.append_incoming(&[incoming(record)], Patience::None)
    }

    /// Appends the record after the last one of `epoch`; the ticket tells its zxid.
    ///
    /// # Errors
    /// As [`append`](Log::append), and [`ErrorKind::CounterExhausted`](crate::ErrorKind::CounterExhausted).
    pub fn append_next(&self, epoch: Epoch, time_ms: i64, payload: &[u8]) -> Result<AppendTicket> {
        self.append_incoming(&[next(epoch, time_ms, payload)], Patience::Forever)
    }

    /// Appends several records as one: a crash keeps all of them or none. The ticket is the last one's.
    ///
    /// # Errors
    /// As [`append`](Log::append); nothing is appended then. [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for no records at all.
    pub fn append_batch(&self, records: &[Record<'_>]) -> Result<AppendTicket> {
        let incoming: Vec<Incoming<'_>> = records.iter().map(incoming).collect();
        self.append_incoming(&incoming, Patience::Forever)
    }

    /// Appends one record and blocks until it is durable: [`append`](Log::append) and
    /// [`wait`](AppendTicket::wait) in one, for a thread that has nothing else to do meanwhile. Without a ticket,
    /// which would hold on to the log, it costs less.
    ///
    /// # Errors
    /// As [`append`](Log::append) before it is ordered, and [`ErrorKind::Poisoned`](crate::ErrorKind::Poisoned) if a write failed: nothing is
    /// known of the record then.
    pub fn commit(&self, record: &Record<'_>) -> Result<Zxid> {
        self.commit_incoming(incoming(record))
    }

    /// The same with the record after the last one of `epoch`, as [`append_next`](Log::append_next). Returns its zxid.
    ///
    /// # Errors
    /// As [`commit`](Log::commit), and [`ErrorKind::CounterExhausted`](crate::ErrorKind::CounterExhausted).
    pub fn commit_next(&self, epoch: Epoch, time_ms: i64, payload: &[u8]) -> Result<Zxid> {
        self.commit_incoming(next(epoch, time_ms, payload))
    }

    fn commit_incoming(&self, record: Incoming<'_>) -> Result<Zxid> {
        let (zxid, batch) = self.shared.append(&[record], Patience::Attending)?;
        self.shared.wait(zxid, batch, None)?;
        Ok(zxid)
    }

    fn append_incoming(&self, records: &[Incoming<'_>], patience: Patience) -> Result<AppendTicket> {
        let (zxid, batch) = self.shared.append(records, patience)?;
        Ok(AppendTicket::new(self.shared.clone(), zxid, batch))
    }
}

fn next(epoch: Epoch, time_ms: i64, payload: &[u8]) -> Incoming<'_> {
    Incoming { zxid: None, epoch, time_ms, payload, payload_crc: checksum::crc32(0, payload) }
}

fn incoming<'a>(record: &Record<'a>) -> Incoming<'a> {
    Incoming {
        zxid: Some(record.zxid),
        epoch: record.epoch,
        time_ms: record.time_ms,
        payload: record.payload,
        payload_crc: checksum::crc32(0, record.payload),
    }
}

#[cfg(test)]
mod tests {
    use crate::base::{Epoch, ErrorKind, Zxid};
    use crate::log::{Log, LogOptions, Record};
    use crate::sim::{CrashImage, Effect, Fault, FaultOp, NamePattern, SimDisk};

    fn open(disk: &SimDisk) -> Log {
        LogOptions::new().segment_bytes(1 << 20).idle_mark(None).open_sim(disk).unwrap().0
    }

    fn content(log: &Log) -> Vec<(Zxid, Vec<u8>)> {
        let (mut reader, mut found) = (log.reader(Zxid::ZERO).unwrap(), Vec::new());
        while let Some(record) = reader.next_record().unwrap() {
            found.push((record.zxid, record.payload.to_vec()));
        }
        found
    }

    #[test]
    fn what_is_committed_survives_a_power_cut_at_once() {
        let disk = SimDisk::new(1);
        let log = open(&disk);
        assert_eq!(log.commit(&Record::new(Zxid::new(7), 5, b"given")).unwrap(), Zxid::new(7));
        assert_eq!(log.commit_next(Epoch::ZERO, 5, b"counted").unwrap(), Zxid::new(8));
        assert_eq!(log.durable_zxid(), Zxid::new(8));
        let expected = vec![(Zxid::new(7), b"given".to_vec()), (Zxid::new(8), b"counted".to_vec())];
        disk.crash(CrashImage::DropUnsynced);
        drop(log);
        assert_eq!(content(&open(&disk)), expected);
    }

    #[test]
    fn threads_that_commit_and_threads_with_tickets_share_groups() {
        let disk = SimDisk::new(2);
        let log = open(&disk);
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let log = &log;
                scope.spawn(move || {
                    for _ in 0..100 {
                        let zxid = match thread % 3 {
                            0 => log.append_next(Epoch::ZERO, 0, b"ticket").unwrap().wait().unwrap(),
                            1 => {
                                drop(log.append_next(Epoch::ZERO, 0, b"dropped").unwrap());
                                log.commit_next(Epoch::ZERO, 0, b"committed").unwrap()
                            }
                            _ => log.commit_next(Epoch::ZERO, 0, b"committed").unwrap(),
                        };
                        assert!(log.durable_zxid() >= zxid);
                    }
                });
            }
        });
        let zxids: Vec<u64> = content(&log).iter().map(|(zxid, _)| zxid.get()).collect();
        assert_eq!(zxids, (1..=800).collect::<Vec<_>>());
        log.close().unwrap();
    }

    #[test]
    fn what_cannot_be_ordered_is_refused_and_what_fails_is_unknown() {
        let disk = SimDisk::new(3);
        let log = open(&disk);
        log.advance_epoch(Epoch::new(1)).unwrap();
        let refused = |epoch, counter| {
            log.commit(&Record::new(Zxid::from_parts(epoch, counter), 0, b"refused")).unwrap_err().kind()
        };
        assert_eq!(log.commit_next(Epoch::ZERO, 0, b"old").unwrap_err().kind(), ErrorKind::Fenced);
        assert_eq!(refused(0, 1), ErrorKind::Fenced);
        let last = log.commit_next(Epoch::new(1), 0, b"durable").unwrap();
        assert_eq!(refused(1, 1), ErrorKind::OutOfOrder);
        assert_eq!(log.logged_zxid(), last);
        disk.inject(Fault::next(FaultOp::Write, Effect::EIO).on(NamePattern::Suffix(".seg".into())));
        assert_eq!(log.commit_next(Epoch::new(1), 0, b"lost").unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(log.durable_zxid(), last);
        log.close().unwrap_err();
    }
}
