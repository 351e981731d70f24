use super::varint::{Cursor, put_i64, put_u64};
use crate::base::Zxid;
use crate::format::AclList;

const SAME_PARENT: u16 = 1;
const HAS_DATA: u16 = 2;
const SAME_ACL: u16 = 4;
const KNOWN: u16 = 7;

/// A node as a block of nodes holds it: its path is `parent`, a slash and `name`, both empty for the root.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct NodeEntry<'a> {
    pub(crate) parent: &'a str,
    pub(crate) name: &'a str,
    pub(crate) data: Option<&'a [u8]>,
    pub(crate) acl: AclList<'a>,
    pub(crate) row: NodeRow,
}

/// The numbers of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct NodeRow {
    pub(crate) czxid: Zxid,
    pub(crate) mzxid: Zxid,
    pub(crate) pzxid: Zxid,
    pub(crate) ctime_ms: i64,
    pub(crate) mtime_ms: i64,
    pub(crate) version: i32,
    pub(crate) cversion: i32,
    pub(crate) aversion: i32,
    /// 0 nobody, 1 a session, 2 a container, 3 a TTL; and which, or how long.
    pub(crate) owner: (u8, i64),
}

/// Writes the nodes of one block, each with what it shares with the one before it left out.
#[derive(Debug, Default)]
pub(crate) struct NodeEncoder {
    parent: String,
    acl: Vec<u8>,
    row: NodeRow,
}

impl NodeEncoder {
    pub(crate) fn encode(&mut self, out: &mut Vec<u8>, node: &NodeEntry<'_>) {
        let mut flags = 0;
        if self.parent == node.parent {
            flags |= SAME_PARENT;
        }
        if node.data.is_some() {
            flags |= HAS_DATA;
        }
        if self.acl == node.acl.as_bytes() {
            flags |= SAME_ACL;
        }
        out.extend(flags.to_le_bytes());
        if flags & SAME_PARENT == 0 {
            put_bytes(out, node.parent.as_bytes());
            node.parent.clone_into(&mut self.parent);
        }
        put_bytes(out, node.name.as_bytes());
        if let Some(data) = node.data {
            put_bytes(out, data);
        }
        if flags & SAME_ACL == 0 {
            put_bytes(out, node.acl.as_bytes());
            self.acl.clear();
            self.acl.extend(node.acl.as_bytes());
        }
        let (row, last) = (&node.row, &self.row);
        put_i64(out, minus(row.czxid, last.czxid));
        put_i64(out, minus(row.mzxid, row.czxid));
        put_i64(out, minus(row.pzxid, row.czxid));
        put_i64(out, row.ctime_ms.wrapping_sub(last.ctime_ms));
        put_i64(out, row.mtime_ms.wrapping_sub(row.ctime_ms));
        for number in [row.version, row.cversion, row.aversion] {
            put_i64(out, number.into());
        }
        out.push(row.owner.0);
        if row.owner.0 & 1 == 1 {
            out.extend(row.owner.1.to_le_bytes());
        }
        self.row = *row;
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u64(out, bytes.len() as u64);
    out.extend(bytes);
}

fn minus(a: Zxid, b: Zxid) -> i64 {
    a.get().wrapping_sub(b.get()).cast_signed()
}

fn plus(a: Zxid, b: i64) -> Zxid {
    Zxid::new(a.get().wrapping_add_signed(b))
}

/// Reads the nodes of one block, from borrowed bytes.
#[derive(Debug)]
pub(crate) struct NodeDecoder<'a> {
    cursor: Cursor<'a>,
    body: &'a [u8],
    parent: &'a str,
    acl: AclList<'a>,
    row: NodeRow,
}

impl<'a> NodeDecoder<'a> {
    pub(crate) fn new(body: &'a [u8]) -> NodeDecoder<'a> {
        let cursor = Cursor::new(body, 0);
        NodeDecoder { cursor, body, parent: "", acl: AclList::EMPTY, row: NodeRow::default() }
    }

    /// Whether all bytes were read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.cursor.at() == self.body.len()
    }

    /// The next node; `None` if there is none, or none that is ever written.
    pub(crate) fn next(&mut self) -> Option<NodeEntry<'a>> {
        let flags = u16::from_le_bytes(self.cursor.array()?);
        if flags & !KNOWN != 0 {
            return None;
        }
        if flags & SAME_PARENT == 0 {
            self.parent = self.text()?;
        }
        let name = self.text()?;
        // With a slash in it, it would be a node that no path leads to.
        if name.as_bytes().contains(&b'/') || (name.is_empty() && !self.parent.is_empty()) {
            return None;
        }
        let data = if flags & HAS_DATA == 0 { None } else { Some(self.bytes()?) };
        if flags & SAME_ACL == 0 {
            self.acl = AclList::from_bytes(self.bytes()?)?;
        }
        let (cursor, last) = (&mut self.cursor, self.row);
        let czxid = plus(last.czxid, cursor.i64()?);
        let (mzxid, pzxid) = (plus(czxid, cursor.i64()?), plus(czxid, cursor.i64()?));
        let ctime_ms = last.ctime_ms.wrapping_add(cursor.i64()?);
        let mtime_ms = ctime_ms.wrapping_add(cursor.i64()?);
        let (version, cversion, aversion) = (cursor.i32()?, cursor.i32()?, cursor.i32()?);
        let [kind] = cursor.array()?;
        let owner = match kind {
            0 | 2 => (kind, 0),
            1 | 3 => (kind, i64::from_le_bytes(cursor.array()?)),
            _ => return None,
        };
        self.row = NodeRow { czxid, mzxid, pzxid, ctime_ms, mtime_ms, version, cversion, aversion, owner };
        Some(NodeEntry { parent: self.parent, name, data, acl: self.acl, row: self.row })
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let (from, to) = self.cursor.range()?;
        Some(&self.body[from as usize..to as usize])
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_round_trip_and_cut_ones_are_refused() {
        let row = NodeRow {
            czxid: Zxid::MAX,
            mzxid: Zxid::new(3),
            pzxid: Zxid::ZERO,
            ctime_ms: i64::MIN,
            mtime_ms: i64::MAX,
            version: i32::MIN,
            cversion: i32::MAX,
            aversion: -1,
            owner: (1, -7),
        };
        let root = NodeEntry { parent: "", name: "", data: None, acl: AclList::EMPTY, row };
        let other = NodeRow { owner: (2, 0), ..NodeRow::default() };
        let child = NodeEntry { parent: "/ä", name: "b", data: Some(b"x"), row: other, ..root };
        let (mut out, mut encoder) = (Vec::new(), NodeEncoder::default());
        [root, child, child].iter().for_each(|node| encoder.encode(&mut out, node));
        let mut decoder = NodeDecoder::new(&out);
        assert_eq!([decoder.next(), decoder.next(), decoder.next()], [Some(root), Some(child), Some(child)]);
        assert!(decoder.is_at_end() && decoder.next().is_none());
        for len in 0..out.len() {
            let mut decoder = NodeDecoder::new(&out[..len]);
            while decoder.next().is_some() {}
        }
        assert_eq!(NodeDecoder::new(&[0xff; 40]).next(), None);
    }
}
