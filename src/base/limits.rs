//! Every bound of the crate, in one place. Options are checked against these when a log is opened.

/// The unit of every layout on disk: headers and groups start at multiples of it, whatever the device.
///
/// The block a group is padded to is a multiple of this (512 to 65,536); see
/// [`LogOptions::block_bytes`](crate::LogOptions::block_bytes).
pub const SECTOR_BYTES: u64 = 512;

/// The first bytes of a segment, kept for its header. One page, so that no device tears it into the first group.
pub const SEGMENT_HEADER_BYTES: u64 = 4096;

/// Smallest and largest block that a group is padded to.
pub const BLOCK_BYTES_MIN: u64 = SECTOR_BYTES;
/// See [`BLOCK_BYTES_MIN`].
pub const BLOCK_BYTES_MAX: u64 = 64 * 1024;

/// Smallest segment: the header and room for a few groups.
pub const SEGMENT_BYTES_MIN: u64 = 16 * 1024;
/// Largest segment. Offsets inside have 64 bits; this bounds the index and the work of one scan.
pub const SEGMENT_BYTES_MAX: u64 = 16 * 1024 * 1024 * 1024;
/// The segment size when none is asked for.
pub const SEGMENT_BYTES_DEFAULT: u64 = 64 * 1024 * 1024;

/// ZooKeeper's default request limit (`jute.maxbuffer`) plus the slack that its server adds for headers.
pub const RECORD_BYTES_DEFAULT: u64 = 1024 * 1024 + 64 * 1024;
/// The hard bound of one record: what a 31-bit length holds, less what framing adds.
pub const RECORD_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Segments are numbered up to here: no log gets there, so a higher number is damage, and arithmetic on
/// numbers below cannot wrap.
pub const SEGMENT_SEQ_MAX: u64 = 1 << 62;

/// Smallest and largest bound on the bytes of one group; a single larger record or batch travels alone.
pub const GROUP_BYTES_MIN: u64 = 4096;
/// See [`GROUP_BYTES_MIN`].
pub const GROUP_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The bound on the bytes of one group when none is asked for.
pub const GROUP_BYTES_DEFAULT: u64 = 1024 * 1024;

/// Most records in one group: what keeps a group's bookkeeping in 32 bits.
pub const GROUP_RECORDS_MAX: u32 = 1 << 20;

/// Most groups in flight at once.
pub const GROUPS_IN_FLIGHT_MAX: usize = 16;

/// Bytes of log between two entries of the sparse index.
pub const INDEX_EVERY_BYTES: u64 = 64 * 1024;

/// Largest manifest that is read. It holds a line per cut that is still retained, so it stays far below.
pub const MANIFEST_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Room kept on disk so that a manifest can be committed (and so a purge be done) on a full disk.
pub const RESERVE_BYTES: u64 = 64 * 1024;

/// Longest time to live of a node, in milliseconds: what 40 bits hold, some 34 years. The shortest is 1.
///
/// Source: ZooKeeper's `EphemeralType.TTL`.
pub const TTL_MS_MAX: i64 = (1 << 40) - 1;

/// A snapshot is begun after so many txns: ZooKeeper's `snapCount`.
pub const SNAP_COUNT_DEFAULT: u64 = 100_000;
/// A snapshot is begun after so many bytes of txns: ZooKeeper's `snapSizeLimitInKb`.
pub const SNAP_LOG_BYTES_DEFAULT: u64 = 4 << 30;
/// While txns are logged, a snapshot is written at this many bytes a second (decision 7 has what was measured).
pub const SNAPSHOT_BYTES_BESIDE_WRITERS_DEFAULT: u64 = 32 << 20;
/// So many verified snapshots are kept: ZooKeeper's `autopurge.snapRetainCount`.
pub const SNAPSHOTS_KEPT_DEFAULT: usize = 3;
/// Most snapshots that are kept.
pub const SNAPSHOTS_KEPT_MAX: usize = 1000;
/// So many of the newest txns stay in memory for peers: ZooKeeper's `commitLogCount`.
pub const RECENT_TXNS_DEFAULT: usize = 500;
/// The bytes that these may have.
pub const RECENT_BYTES_DEFAULT: usize = 16 << 20;

const _: () = assert!(SEGMENT_HEADER_BYTES.is_multiple_of(SECTOR_BYTES));
const _: () = assert!(SEGMENT_BYTES_MIN > SEGMENT_HEADER_BYTES);
const _: () = assert!(RECORD_BYTES_MAX < i32::MAX as u64);
const _: () = assert!(GROUP_BYTES_DEFAULT <= GROUP_BYTES_MAX && RECORD_BYTES_DEFAULT <= RECORD_BYTES_MAX);
