use crate::base::{Error, Result};

/// Pieces that are read before they are asked for.
const PIECES_AHEAD: usize = 3;

/// Takes what `next` makes in a thread of its own, in order, until there is none, or `take` wants no more (it tells false
/// then, and so does this). An error of `next` comes after all that was made before it.
pub(crate) fn read_ahead<T: Send>(
    mut next: impl FnMut() -> Result<Option<T>> + Send,
    mut take: impl FnMut(T) -> Result<bool>,
) -> Result<bool> {
    std::thread::scope(|scope| {
        let (sender, pieces) = crossbeam_channel::bounded(PIECES_AHEAD);
        let read = move || {
            while let Some(piece) = next().transpose() {
                let failed = piece.is_err();
                // Whoever takes no more has found a fault, or has enough.
                if sender.send(piece).is_err() || failed {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("arborlog-reader".into());
        thread.spawn_scoped(scope, read).map_err(|e| Error::io("start a thread", e))?;
        for piece in pieces {
            if !take(piece?)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}
