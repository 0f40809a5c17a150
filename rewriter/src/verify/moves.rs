//! Tables of the original that have a new place.

/// What has a new place.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// The dynamic string table.
    pub strings: Option<Move>,
    /// The dynamic table.
    pub dynamic: Option<Move>,
    /// `.eh_frame_hdr`.
    pub frames: Option<Move>,
}

impl Moves {
    pub(super) fn all(&self) -> impl Iterator<Item = &Move> {
        [&self.strings, &self.dynamic, &self.frames]
            .into_iter()
            .flatten()
    }
}

/// Address before; address, file offset and length after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Move {
    pub from: u64,
    pub va: u64,
    pub offset: u64,
    pub len: u64,
}
