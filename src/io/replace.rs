use std::io;

use super::contract::{Disk, OpenMode};

/// Gives a file its whole content at once: it is written under the name `temp`, where there must be nothing, synced, and
/// renamed. The rename is durable only once the directory is synced. What fails leaves nothing behind, if that can be
/// helped. `synced` is true but for planted bugs.
pub(crate) fn replace_file(
    disk: &dyn Disk,
    (temp, name): (&str, &str),
    bytes: &[u8],
    synced: bool,
) -> io::Result<()> {
    let file = disk.open(temp, OpenMode::CreateNew { direct: false })?;
    let written = file.write_all_at(0, bytes).and_then(|()| if synced { file.sync() } else { Ok(()) });
    written.and_then(|()| disk.rename(temp, name)).inspect_err(|_| {
        // Best effort: if this fails too, whoever makes the next change does it.
        let _left = disk.remove(temp);
    })
}
