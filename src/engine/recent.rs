use std::collections::VecDeque;

use crate::base::Zxid;
use crate::format::TxnBuf;

/// The newest applied txns, for peers that lag a little: ZooKeeper's `committedLog`. Bounded by count and by bytes.
#[derive(Debug)]
pub(super) struct Recent {
    txns: VecDeque<TxnBuf>,
    bytes: usize,
    count_max: usize,
    bytes_max: usize,
}

impl Recent {
    pub(super) fn new(count_max: usize, bytes_max: usize) -> Recent {
        Recent { txns: VecDeque::new(), bytes: 0, count_max, bytes_max }
    }

    pub(super) fn push(&mut self, txn: TxnBuf) {
        if self.count_max == 0 {
            return;
        }
        self.bytes += txn.as_bytes().len();
        self.txns.push_back(txn);
        while self.txns.len() > self.count_max || self.bytes > self.bytes_max && self.txns.len() > 1 {
            let oldest = self.txns.pop_front().map_or(0, |txn| txn.as_bytes().len());
            self.bytes -= oldest;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.txns.len()
    }

    pub(super) fn zxids(&self) -> Vec<Zxid> {
        self.txns.iter().map(TxnBuf::zxid).collect()
    }

    /// The txns after `after` up to `through`, if all of them are here.
    pub(super) fn between(&self, after: Zxid, through: Zxid) -> Option<Vec<TxnBuf>> {
        let is_here = self.txns.front().is_some_and(|first| first.zxid() <= after)
            && self.txns.back().is_some_and(|last| last.zxid() >= through);
        if !is_here {
            return None;
        }
        let wanted = |txn: &&TxnBuf| txn.zxid() > after && txn.zxid() <= through;
        Some(self.txns.iter().filter(wanted).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Txn, TxnBody};

    #[test]
    fn keeps_the_newest_within_both_bounds() {
        let txn = |zxid, bytes: usize| {
            let data = vec![7; bytes];
            let body = TxnBody::SetData { path: "/a", data: Some(&data), version: 1 };
            Txn { zxid: Zxid::new(zxid), time_ms: 0, session_id: 0, cxid: 0, digest: None, body }.to_buf()
        };
        let mut recent = Recent::new(3, 10_000);
        for zxid in 1..=5 {
            recent.push(txn(zxid, 10));
        }
        assert_eq!(recent.zxids(), [3, 4, 5].map(Zxid::new));
        assert!(
            recent.between(Zxid::new(2), Zxid::new(5)).is_none(),
            "what came after 2 is not here for sure"
        );
        let got = recent.between(Zxid::new(3), Zxid::new(4)).unwrap();
        assert_eq!(got.iter().map(TxnBuf::zxid).collect::<Vec<_>>(), [Zxid::new(4)]);
        assert!(recent.between(Zxid::new(3), Zxid::new(6)).is_none(), "6 is not here yet");
        recent.push(txn(6, 9_990));
        assert_eq!(recent.zxids(), [6].map(Zxid::new), "one is always kept");
        // A large one that has gone leaves its room.
        for zxid in 7..=9 {
            recent.push(txn(zxid, 10));
        }
        assert_eq!(recent.zxids(), [7, 8, 9].map(Zxid::new));
        assert_eq!(recent.between(Zxid::new(7), Zxid::new(9)).map(|got| got.len()), Some(2), "7 is here");
        let mut none = Recent::new(0, 10_000);
        none.push(txn(1, 1));
        assert!(none.zxids().is_empty());
    }
}
