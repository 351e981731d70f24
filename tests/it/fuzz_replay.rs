//! The fuzz targets without a fuzzer: their committed corpus, and a few thousand mutations of it, on the stable
//! toolchain in every test run. `fuzz/README.md` has how to fuzz for longer.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

#[path = "../../fuzz/src/bodies/mod.rs"]
#[allow(unreachable_pub, reason = "public for the fuzz targets")]
mod bodies;

use bodies::{
    Outcome, TARGETS, golden_group_bytes, golden_manifest, golden_segments, golden_snapshot, golden_txns,
};

/// Mutations for each target.
const MUTATIONS: u64 = 800;
/// The same for a target whose inputs are runs of a whole engine.
const ENGINE_MUTATIONS: u64 = 80;

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target)
}

/// The committed inputs of a target, in the order of their names.
fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(corpus(target)).expect("each target has a corpus");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable entry").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{target} has no seeds");
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).expect("a readable seed"))).collect()
}

#[test]
fn the_committed_corpus_holds() {
    for (name, target) in TARGETS {
        let outcomes: Vec<Outcome> = seeds(name)
            .into_iter()
            .map(|(path, input)| {
                println!("{}", path.display());
                target(&input)
            })
            .collect();
        assert!(outcomes.contains(&Outcome::Opened), "{name}: no seed opens: {outcomes:?}");
    }
}

#[test]
fn mutations_of_the_corpus_hold() {
    for (name, target) in TARGETS {
        let seeds = seeds(name);
        let mut counts: HashMap<Outcome, u64> = HashMap::new();
        let mutations = if name == "engine_ops" { ENGINE_MUTATIONS } else { MUTATIONS };
        for number in 0..mutations {
            let mut random = Random(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            let (path, seed) = &seeds[random.below(seeds.len())];
            let input = mutate(seed, &mut random);
            // Told only when it fails: the input can be made again from its number.
            println!("{name} mutation {number} of {}", path.display());
            *counts.entry(target(&input)).or_default() += 1;
        }
        println!("{name}: {counts:?}");
        for outcome in [Outcome::Opened, Outcome::Refused] {
            let count = counts.get(&outcome).copied().unwrap_or(0);
            assert!(count > 0, "{name}: none was {outcome:?}: {counts:?}");
        }
    }
}

/// xorshift: the same mutations in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 11) as usize % bound.max(1)
    }
}

fn mutate(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut input = seed.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(input.len());
        match random.below(6) {
            0 if !input.is_empty() => input[at] ^= 1 << random.below(8),
            1 if !input.is_empty() => input[at] = random.next().to_le_bytes()[0],
            2 => input.truncate(at),
            3 => drop(input.splice(at..at, random.next().to_le_bytes())),
            4 => {
                let end = (at + random.below(64)).min(input.len());
                drop(input.drain(at..end));
            }
            _ => input.iter_mut().skip(at).take(8).zip(random.next().to_le_bytes()).for_each(|(b, n)| *b = n),
        }
    }
    input
}

/// Writes the corpus anew from the golden log. Do that with a new format, or a new shape of input.
#[test]
#[ignore = "writes fuzz/corpus; ARBORLOG_WRITE_SEEDS=1 cargo test --features sim --test it fuzz_seeds_write -- --ignored"]
fn fuzz_seeds_write() {
    if std::env::var_os("ARBORLOG_WRITE_SEEDS").is_none() {
        return;
    }
    let write = |target: &str, name: &str, parts: &[&[u8]]| {
        std::fs::create_dir_all(corpus(target)).expect("make a corpus");
        // Names that begin with a hexadecimal digit are the fuzzer's own.
        std::fs::write(corpus(target).join(format!("seed-{name}")), parts.concat()).expect("write a seed");
    };
    for (name, segment) in golden_segments() {
        let name = name.trim_start_matches('0').trim_end_matches(".seg");
        write("segment_open", name, &[&[0], segment]);
        write("frame_decode", &format!("{name}-signed"), &[&[15], golden_group_bytes(segment)]);
    }
    let (_, first) = golden_segments().next().expect("a log has a segment");
    write("segment_open", "torn", &[&[0], &first[..first.len() / 2 + 100]]);
    write("segment_open", "claimed", &[&[0xf0], &first[..8192]]);
    write("frame_decode", "foreign", &[&[0], golden_group_bytes(first)]);
    write("manifest_decode", "whole", &[&[0], golden_manifest()]);
    write("manifest_decode", "signed", &[&[1], golden_manifest()]);
    write("manifest_decode", "short", &[&[1], b"arborlog manifest 1\n"]);
    write("manifest_decode", "newer", &[&[1], b"arborlog manifest 2\n"]);
    for (name, txn) in golden_txns() {
        write("txn_decode", name, &[&txn]);
    }
    write("txn_decode", "newer", &[&[2]]);
    // The kind of change, the file, a place in it, and what the kind takes.
    let (flip, garbage, chop, zero, remove, rename, copy, manifest, group, page) =
        (0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    write("recovery", "nothing", &[]);
    write("recovery", "flip", &[&[flip, 0, 40, 16, 0, 1]]);
    write("recovery", "flip-last", &[&[flip, 6, 8, 16, 0, 1]]);
    write("recovery", "garbage", &[&[garbage, 6, 0, 24, 0], &[0xa5; 16]]);
    write("recovery", "chop", &[&[chop, 6, 200, 16, 0]]);
    write("recovery", "zero", &[&[zero, 6, 0, 16, 0, 0, 8, 0]]);
    write("recovery", "remove", &[&[remove, 6, 0, 0, 0]]);
    write("recovery", "remove-manifest", &[&[remove, 8, 0, 0, 0]]);
    write("recovery", "rename", &[&[rename, 1, 0, 0, 0, 7]]);
    write("recovery", "last-number", &[&[copy, 0, 0, 0, 0, 33]]);
    write("recovery", "copy", &[&[copy, 6, 0, 0, 0, 9]]);
    write("recovery", "durable", &[&[manifest, 0, 0, 0, 0, 5, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0]]);
    write("recovery", "unclean", &[&[manifest, 0, 0, 0, 0, 6, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]]);
    write("recovery", "group-field", &[&[group, 6, 0, 0, 0, 0, 0, 0, 7, 0, 0, 1]]);
    write("recovery", "page-field", &[&[page, 6, 0, 0, 0, 5, 0, 0, 1, 0]]);
    write("snapshot_load", "whole", &[&[0], golden_snapshot()]);
    write("snapshot_load", "signed", &[&[15], golden_snapshot()]);
    write("snapshot_load", "short", &[&[3], &golden_snapshot()[..golden_snapshot().len() / 2]]);
    let (root, orphan, sibling) = (
        bodies::node_entry(Some(""), ""),
        bodies::node_entry(Some("/a"), "b"),
        bodies::node_entry(None, "c"),
    );
    for (name, nodes) in [
        ("child-first", [&orphan[..], &bodies::node_entry(Some(""), "a"), &root].concat()),
        ("orphans", [&root[..], &orphan, &sibling, &sibling].concat()),
        ("no-root", [&orphan[..], &sibling].concat()),
    ] {
        write("snapshot_load", name, &[&[15], &bodies::snapshot_of_nodes(&nodes, 2)]);
    }
    tree_seeds(&write);
    engine_seeds(&write);
    zookeeper_seeds(&write);
}

/// Writes a seed: the target, the seed's name, its pieces.
type Write<'a> = &'a dyn Fn(&str, &str, &[&[u8]]);

/// Each txn: a byte for the zxid, one for the time, one for the session; its kind, a path (how many names, and
/// which), a choice of data, list and kind of node, and a version.
fn tree_seeds(write: Write<'_>) {
    let session: &[u8] = &[0, 8, 0, 9, 0, 0, 6];
    let create_a: &[u8] = &[0, 8, 0, 0, 1, 0, 0, 3];
    let create_ab_ephemeral: &[u8] = &[0, 8, 0, 0, 2, 0, 1, 16, 3];
    let create_b_container: &[u8] = &[0, 8, 0, 0, 1, 1, 160, 4];
    let set_a: &[u8] = &[0, 8, 0, 6, 1, 0, 3, 3];
    let acl_of_a: &[u8] = &[0, 8, 0, 8, 1, 0, 8, 3];
    let delete_a: &[u8] = &[0, 8, 0, 3, 1, 0, 0, 2];
    let delete_b: &[u8] = &[0, 8, 0, 3, 1, 1, 0, 2];
    let close: &[u8] = &[0, 8, 0, 10, 0, 0, 2];
    let multi: &[u8] = &[0, 8, 0, 13, 0, 0, 2, 2, 0, 2, 0, 0, 0, 5, 11, 1, 0, 0, 2];
    let slashes: &[u8] = &[0, 8, 0, 0, 231, 0, 0, 5];
    write(
        "tree_model",
        "valid",
        &[
            session,
            create_a,
            create_ab_ephemeral,
            create_b_container,
            set_a,
            acl_of_a,
            delete_b,
            multi,
            close,
        ],
    );
    write(
        "tree_model",
        "above-others",
        &[session, create_a, create_ab_ephemeral, multi, delete_a, create_a, close],
    );
    write("tree_model", "again", &[create_a, create_a, &[250, 8, 0, 3, 1, 0, 0, 2], delete_a, set_a]);
    write("tree_model", "no-parent", &[create_ab_ephemeral, session, close, acl_of_a, create_a]);
    write("tree_model", "no-path", &[create_a, slashes, slashes, delete_a, &[0, 8, 0, 3, 231, 0, 0, 2]]);
}

/// The seed of the disks, the way to commit, how many snapshots are kept; then lives. Each but the first begins with
/// the disk that will lose its power, after how many operations, and what that leaves; then come how many operations
/// there are at most, and each with what it takes. Chance fills in the rest: the long ones were drawn.
fn engine_seeds(write: Write<'_>) {
    // A path, a child, a length of data, a kind, and whether the answer is waited for.
    let create = |path: u8| [11, path, 0, 0, 9, 0, 1];
    let child = |path: u8| [12, path, path % 4, 0, 99, 1, 1];
    let unawaited = |path: u8| [13, path, 1, 1, 200, 5, 0];
    let begin: &[u8] = &[3, 0, 1, 59];
    let made = [&create(1)[..], &create(2), &child(1), &child(2), &unawaited(2)].concat();
    let (snapshot, reopen, send, look) = (&[0_u8][..], &[3_u8][..], &[5_u8][..], &[7_u8][..]);
    let (enter, checkpoint) = (&[6_u8, 1][..], &[8_u8, 5, 1][..]);
    let (truncate, restore) = (&[2_u8, 3][..], &[9_u8, 1, 2, 1][..]);
    let (install, learn) = (&[4_u8, 1, 1][..], &[10_u8, 7, 2][..]);
    let learn_rest: &[u8] = &[0, 1];
    let write = |name: &str, parts: &[&[u8]]| write("engine_ops", name, parts);
    write("reopened", &[begin, &made, snapshot, &made, reopen, look, &made]);
    write("truncated", &[begin, &made, enter, &made, truncate, &made, look, truncate]);
    write("restored", &[begin, &made, snapshot, &made, restore, look, &made, checkpoint]);
    write("installed", &[begin, &made, send, &made, install, &made, look, reopen]);
    write("learnt", &[begin, &made, enter, learn, &made[..14], learn_rest, &made, look, reopen]);
    for (name, seed) in [("drawn-1", 1_u64), ("drawn-2", 2), ("drawn-3", 3), ("drawn-4", 4), ("drawn-5", 5)] {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let bytes: Vec<u8> = (0..bodies::ENGINE_RUN).map(|_| random.next().to_le_bytes()[3]).collect();
        write(name, &[&bytes]);
    }
}

/// The first byte: whether it is a snapshot, whether its checksums are made right, how it is compressed.
fn zookeeper_seeds(write: Write<'_>) {
    let file = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zookeeper").join(name);
        std::fs::read(path).expect("a recorded file")
    };
    let log = |name: &str| {
        let mut bytes = file(name);
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        // Some of the zeros that a server writes ahead.
        bytes.truncate(end + 64);
        bytes
    };
    let write = |name: &str, parts: &[&[u8]]| write("zookeeper_files", name, parts);
    write("log", &[&[0], &log("fmt-39/version-2/log.1")]);
    write("log-signed", &[&[2], &log("fmt-39/version-2/log.1")]);
    write("multi", &[&[2], &log("multi/data/version-2/log.1")]);
    write("snapshot", &[&[1], &file("fmt-39/version-2/snapshot.20")]);
    write("snapshot-signed", &[&[3], &file("fmt-39/version-2/snapshot.20")]);
    write("snapshot-36", &[&[3], &file("fmt-36/version-2/snapshot.20")]);
    write("gz", &[&[5], &file("fmt-39-gz/version-2/snapshot.20.gz")]);
    write("snappy", &[&[9], &file("snappy-snapshot/data/version-2/snapshot.0.snappy")]);
}
