//! What a simulated disk was asked to do.

/// Counts of calls since the disk was made, or since it came up as an image. Calls that failed count too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SimCounters {
    /// Files made.
    pub creates: u64,
    /// Files opened that existed.
    pub opens: u64,
    /// Reads.
    pub reads: u64,
    /// Bytes that reads returned.
    pub bytes_read: u64,
    /// Writes that ended, of every kind.
    pub writes: u64,
    /// Those of them that were durable when they ended.
    pub durable_writes: u64,
    /// Bytes that writes put into files.
    pub bytes_written: u64,
    /// Syncs of files, those that follow a write included.
    pub syncs: u64,
    /// Syncs of the directory.
    pub sync_dirs: u64,
    /// Renames.
    pub renames: u64,
    /// Second names given to files.
    pub links: u64,
    /// Removals.
    pub removes: u64,
    /// Changes of a length.
    pub set_lens: u64,
    /// Reservations of blocks.
    pub allocates: u64,
    /// Listings of the directory.
    pub lists: u64,
}
