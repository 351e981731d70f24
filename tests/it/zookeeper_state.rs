//! Holds a tree against what a real ZooKeeper server told of its own: `expected.json` beside the directories that
//! were recorded.
//!
//! There are two shapes: a *state* has the fields as they are stored, sessions and the tree's digest; a *dump* has
//! what a client was told.

use std::collections::BTreeMap;

use arborlog::{AclBuf, AclEntry, AclList, DataTree, Owner, Perms, StoredStat, WalkedNode, Zxid};
use serde_json::Value;

/// A node as the server told of it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ExpectedNode {
    pub(crate) data: Option<Vec<u8>>,
    pub(crate) acl: Vec<(i32, String, String)>,
    /// czxid, mzxid, pzxid.
    pub(crate) zxids: [Zxid; 3],
    /// ctime, mtime.
    pub(crate) times_ms: [i64; 2],
    pub(crate) version: i32,
    pub(crate) aversion: i32,
    pub(crate) cversion: Cversion,
    /// As it is stored in a state, as a client sees it in a dump.
    pub(crate) owner: i64,
}

/// A count of children, of either kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cversion {
    Stored(i32),
    /// With the children and the data's length, which a client is told too.
    Seen {
        cversion: i32,
        child_count: i32,
        data_bytes: i32,
    },
}

/// What a server told of its tree.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Expected {
    pub(crate) nodes: BTreeMap<String, ExpectedNode>,
    pub(crate) sessions: Option<BTreeMap<i64, i32>>,
    pub(crate) digest: Option<u64>,
    pub(crate) zxid: Option<Zxid>,
}

impl Expected {
    /// Reads an `expected.json` of either shape.
    pub(crate) fn parse(text: &str) -> Expected {
        let json: Value = serde_json::from_str(text).expect("an expected.json is JSON");
        let nodes = match &json["nodes"] {
            Value::Array(list) => list.iter().map(state_node).collect(),
            Value::Object(map) => map.iter().map(|(path, node)| (path.clone(), dump_node(node))).collect(),
            other => panic!("nodes are a list or a map: {other}"),
        };
        let sessions = json["sessions"]
            .as_object()
            .map(|map| map.iter().map(|(id, timeout)| (session(id), int(timeout))).collect());
        let zxid = json.get("zxid").map(|zxid| Zxid::new(long(zxid).cast_unsigned()));
        // A restore tells it in base 16.
        let zxid = zxid.or_else(|| json["last_processed_zxid"].as_str().map(|zxid| Zxid::new(base16(zxid))));
        let digest = json["treeDigest"].as_u64().or_else(|| json["tree_digest"].as_str().map(base16));
        Expected { nodes, sessions, digest, zxid }
    }

    /// Everything in which the tree is not what the server told.
    pub(crate) fn differences(&self, tree: &DataTree) -> Vec<String> {
        let mut found = Differences(Vec::new());
        let below = tree.descendants("/", None).map(|node| node.path());
        for path in below.filter(|path| !self.nodes.contains_key(path)) {
            found.0.push(format!("{path} is not to be there"));
        }
        for (path, node) in &self.nodes {
            compare_node(tree, path, node, &mut found);
        }
        if let Some(sessions) = &self.sessions {
            found.compare("sessions", &tree.sessions().into_iter().collect::<BTreeMap<_, _>>(), sessions);
        }
        if let Some(digest) = self.digest {
            found.compare("digest", &tree.digest(), &digest);
        }
        if let Some(zxid) = self.zxid {
            found.compare("last zxid", &tree.last_zxid(), &zxid);
        }
        found.0
    }
}

struct Differences(Vec<String>);

impl Differences {
    fn compare<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, tree: &T, told: &T) {
        if tree != told {
            self.0.push(format!("{what}: {tree:?}, and the server told {told:?}"));
        }
    }
}

fn compare_node(tree: &DataTree, path: &str, told: &ExpectedNode, found: &mut Differences) {
    let Some(node) = tree.get(path) else {
        found.0.push(format!("{path} is missing"));
        return;
    };
    let (stat, stored) = (node.stat(), node.stored());
    let mut compare = |field: &str, tree: &dyn std::fmt::Debug, told: &dyn std::fmt::Debug| {
        found.compare(&format!("{path}: {field}"), &format!("{tree:?}"), &format!("{told:?}"));
    };
    compare("data", &node.data(), &told.data.as_deref());
    // No list is told as the open one.
    let open = [AclEntry { perms: Perms::ALL, scheme: "world", id: "anyone" }];
    let entry = |e: AclEntry<'_>| (e.perms.get(), e.scheme.to_owned(), e.id.to_owned());
    let acl: Vec<_> = match node.acl() {
        list if list.is_empty() => open.into_iter().map(entry).collect(),
        list => list.iter().map(entry).collect(),
    };
    compare("ACL", &acl, &told.acl);
    compare("czxid, mzxid, pzxid", &[stored.czxid, stored.mzxid, stored.pzxid], &told.zxids);
    compare("ctime, mtime", &[stored.ctime_ms, stored.mtime_ms], &told.times_ms);
    compare("version", &stored.version, &told.version);
    compare("aversion", &stored.aversion, &told.aversion);
    match told.cversion {
        Cversion::Stored(cversion) => {
            compare("stored cversion", &stored.cversion, &cversion);
            compare("stored owner", &stored.owner.to_raw(), &told.owner);
        }
        Cversion::Seen { cversion, child_count, data_bytes } => {
            compare("cversion", &stat.cversion, &cversion);
            compare("children", &stat.child_count, &child_count);
            compare("data length", &stat.data_bytes, &data_bytes);
            compare("owner", &stat.ephemeral_owner, &told.owner);
        }
    }
}

fn state_node(node: &Value) -> (String, ExpectedNode) {
    let field = |name: &str| long(&node[name]);
    let zxid = |name: &str| Zxid::new(field(name).cast_unsigned());
    let entry = |e: &Value| (int(&e[0]), text(&e[1]), text(&e[2]));
    let parsed = ExpectedNode {
        data: node["data"].as_str().map(hex),
        acl: node["acl"].as_array().expect("a list").iter().map(entry).collect(),
        zxids: [zxid("czxid"), zxid("mzxid"), zxid("pzxid")],
        times_ms: [field("ctime"), field("mtime")],
        version: int(&node["version"]),
        aversion: int(&node["aversion"]),
        cversion: Cversion::Stored(int(&node["cversionPersisted"])),
        owner: field("ephemeralOwner"),
    };
    (text(&node["path"]), parsed)
}

fn dump_node(node: &Value) -> ExpectedNode {
    let stat = &node["stat"];
    let field = |name: &str| long(&stat[name]);
    let zxid = |name: &str| Zxid::new(field(name).cast_unsigned());
    let entry = |e: &Value| (int(&e["perms"]), text(&e["scheme"]), text(&e["id"]));
    ExpectedNode {
        data: node["data_b64"].as_str().map(base64),
        acl: node["acl"].as_array().expect("a list").iter().map(entry).collect(),
        zxids: [zxid("czxid"), zxid("mzxid"), zxid("pzxid")],
        times_ms: [field("ctime"), field("mtime")],
        version: int(&stat["version"]),
        aversion: int(&stat["aversion"]),
        cversion: Cversion::Seen {
            cversion: int(&stat["cversion"]),
            child_count: int(&stat["numChildren"]),
            data_bytes: int(&stat["dataLength"]),
        },
        owner: field("ephemeralOwner"),
    }
}

fn session(id: &str) -> i64 {
    id.parse().unwrap_or_else(|_| base16(id).cast_signed())
}

/// A number as a restore tells it.
pub(crate) fn base16(text: &str) -> u64 {
    let digits = text.strip_prefix("0x").unwrap_or_else(|| panic!("base 16: {text}"));
    u64::from_str_radix(digits, 16).expect("base 16")
}

fn long(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("a number: {value}"))
}

fn int(value: &Value) -> i32 {
    i32::try_from(long(value)).expect("32 bits")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("a text: {value}")).to_owned()
}

fn hex(digits: &str) -> Vec<u8> {
    let digit = |c: u8| char::from(c).to_digit(16).and_then(|d| u8::try_from(d).ok()).expect("a digit");
    digits.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn base64(letters: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut held) = (0_u32, 0);
    for letter in letters.bytes().filter(|letter| *letter != b'=') {
        let at = ALPHABET.iter().position(|a| *a == letter).expect("a letter of base 64");
        (bits, held) = (bits << 6 | u32::try_from(at).expect("six bits"), held + 6);
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held).to_le_bytes()[0]);
        }
    }
    bytes
}

/// The tree of what a server told, built by hand. What it did not tell is taken from what it did.
fn built(expected: &Expected) -> DataTree {
    let mut loader = DataTree::loader();
    for (path, node) in &expected.nodes {
        let entries =
            node.acl.iter().map(|(perms, scheme, id)| AclEntry { perms: Perms::new(*perms), scheme, id });
        let acl: AclBuf = entries.collect();
        let stat = StoredStat {
            czxid: node.zxids[0],
            mzxid: node.zxids[1],
            pzxid: node.zxids[2],
            ctime_ms: node.times_ms[0],
            mtime_ms: node.times_ms[1],
            version: node.version,
            cversion: match node.cversion {
                Cversion::Stored(cversion) => cversion,
                Cversion::Seen { cversion, child_count, .. } => i32::midpoint(cversion, child_count),
            },
            aversion: node.aversion,
            owner: Owner::from_raw(node.owner, true),
        };
        // The root and what servers keep have no list.
        let has_none = path == "/" || path == "/zookeeper" || path == "/zookeeper/quota";
        let acl = if has_none { AclList::EMPTY } else { acl.as_list() };
        loader.node(&WalkedNode { path, data: node.data.as_deref(), acl, stat });
    }
    for (id, timeout_ms) in expected.sessions.iter().flatten() {
        loader.session(*id, *timeout_ms);
    }
    let done = loader.finish(expected.zxid.unwrap_or(Zxid::ZERO));
    assert_eq!(done.orphans, 0);
    done.tree
}

const STATE: &str = include_str!("../zookeeper/fmt-39/expected.json");
const DUMP: &str = include_str!("../zookeeper/ephemerals/expected.json");

#[test]
fn the_tree_of_a_real_server_has_its_digest() {
    let expected = Expected::parse(STATE);
    assert_eq!((expected.digest, expected.nodes.len()), (Some(34_183_081_192), 23));
    let owners: Vec<Owner> = expected.nodes.values().map(|n| Owner::from_raw(n.owner, true)).collect();
    assert!(owners.contains(&Owner::Container) && owners.contains(&Owner::Ttl { ttl_ms: 3_600_000 }));
    assert_eq!(expected.differences(&built(&expected)), Vec::<String>::new());
}

#[test]
fn the_tree_that_a_client_was_told_of_is_the_same() {
    let expected = Expected::parse(DUMP);
    assert!(expected.nodes.values().any(|node| node.owner != 0));
    assert_eq!(expected.differences(&built(&expected)), Vec::<String>::new());
}

type Change<'a> = &'a dyn Fn(&mut Expected);

#[test]
fn every_field_that_is_not_as_told_is_found() {
    type Break = fn(&mut ExpectedNode);
    let breaks: [(&str, Break); 8] = [
        ("/a: data", |node| node.data = None),
        ("/a: ACL", |node| node.acl[0].0 = 1),
        ("/a: czxid", |node| node.zxids[2] = Zxid::MAX),
        ("/a: ctime", |node| node.times_ms[0] += 1),
        ("/a: version", |node| node.version += 1),
        ("/a: aversion", |node| node.aversion += 1),
        ("/a: stored cversion", |node| node.cversion = Cversion::Stored(0)),
        ("/a: stored owner", |node| node.owner = 1),
    ];
    let expected = Expected::parse(STATE);
    let tree = built(&expected);
    let told = |change: &dyn Fn(&mut Expected)| {
        let mut changed = expected.clone();
        change(&mut changed);
        changed.differences(&tree)
    };
    for (what, change) in breaks {
        let found = told(&|expected| change(expected.nodes.get_mut("/a").expect("there")));
        assert!(found.len() == 1 && found[0].starts_with(what), "{what}: {found:?}");
    }
    let more: [(&str, Change<'_>); 5] = [
        ("/a is not to be there", &|expected| drop(expected.nodes.remove("/a"))),
        ("/new is missing", &|expected| {
            drop(expected.nodes.insert("/new".to_owned(), expected.nodes["/a"].clone()));
        }),
        ("sessions", &|expected| expected.sessions.as_mut().expect("told").clear()),
        ("digest", &|expected| expected.digest = Some(1)),
        ("last zxid", &|expected| expected.zxid = Some(Zxid::ZERO)),
    ];
    for (what, change) in more {
        let found = told(change);
        assert!(found.len() == 1 && found[0].starts_with(what), "{what}: {found:?}");
    }
    let dump = Expected::parse(DUMP);
    let tree = built(&dump);
    for field in 0..4 {
        let mut changed = dump.clone();
        let node = changed.nodes.get_mut("/svc").expect("there");
        let Cversion::Seen { cversion, child_count, data_bytes } = &mut node.cversion else { unreachable!() };
        *[cversion, child_count, data_bytes, &mut node.version][field] += 1;
        assert_eq!(changed.differences(&tree).len(), 1, "field {field}");
    }
}
