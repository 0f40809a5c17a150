//! The original's unwind rules, read when somebody asks.

use crate::image::Image;
use crate::unwind::{Frames, Row};
use gimli::UnwindContext;
use std::fmt;
use std::sync::OnceLock;

/// The unwind rules of a file.
pub(crate) struct Rules<'a> {
    bytes: &'a [u8],
    frames: OnceLock<Option<Frames<'a>>>,
}

impl fmt::Debug for Rules<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").finish_non_exhaustive()
    }
}

impl<'a> Rules<'a> {
    pub(crate) fn of(bytes: &'a [u8]) -> Rules<'a> {
        Rules {
            bytes,
            frames: OnceLock::new(),
        }
    }

    /// The rules at each of these addresses, where there are some; `None` when it isn't known how the file is unwound.
    pub(crate) fn rows(&self, addresses: impl Iterator<Item = u64>) -> Option<Vec<Option<Row>>> {
        let frames = self.frames.get_or_init(|| {
            let image = Image::read(self.bytes, "").ok()?;
            Frames::read(&image)
        });
        let frames = frames.as_ref()?;
        let mut context = UnwindContext::new();
        let rows = addresses.map(|at| frames.row(at, &mut context));
        Some(rows.collect())
    }
}
