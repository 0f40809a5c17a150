//! Places in the midst of functions whose addresses the file holds: the targets of jump tables, and labels whose address a
//! program takes (GNU C's computed `goto`).

use super::Module;
use super::image::{self, Kind, u64_at};

/// Words of 8 bytes are looked for at multiples of this.
const STEP: usize = 4;

/// All addresses in code where no function begins that are in the file's data, ascending. Files that may be loaded anywhere have a
/// relocation for each; in others every word may be one.
pub(super) fn pointers(module: &Module<'_>) -> Vec<u64> {
    let is_inside = |va: &u64| module.image.is_code(*va) && !module.functions.starts_at(*va);
    let relative = module.dynamic.relative.iter().map(|r| r.1);
    let mut found: Vec<u64> = relative.filter(is_inside).collect();
    if module.image.kind == Kind::Executable {
        for load in &module.image.loads {
            let bytes = image::part(module.image.bytes, load.offset, load.file_size);
            let bytes = bytes.unwrap_or_default();
            let words = (0..bytes.len()).step_by(STEP);
            found.extend(words.filter_map(|at| u64_at(bytes, at)).filter(is_inside));
            module.release.read(bytes.len() as u64);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
