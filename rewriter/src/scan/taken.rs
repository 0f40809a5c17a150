//! Places in the midst of functions whose addresses the file holds: the targets of jump tables, and labels whose address a
//! program takes (GNU C's computed `goto`).

use super::Module;
use super::bytes::{self, u32_at, u64_at};
use super::image::Kind;

/// Words of 4 bytes are looked for at multiples of this; those of 8 anywhere, since they may be packed.
const STEP: usize = 4;

/// All addresses in code where no function begins that are in the file's data, ascending. Files that may be loaded anywhere have a
/// relocation for each; in others every word may be one.
pub(super) fn pointers(module: &Module<'_>) -> Vec<u64> {
    let code = module.image.loads.iter().filter(|load| load.exec);
    let span = code.map(|load| (load.va, load.va.saturating_add(load.file_size)));
    let (low, high) = span.fold((u64::MAX, 0), |(low, high), (from, to)| {
        (low.min(from), high.max(to))
    });
    let is_inside = |va: &u64| {
        (low..high).contains(va) && module.image.is_code(*va) && !module.functions.begins_at(*va)
    };
    let mut found: Vec<u64> = module.dynamic.addresses().filter(is_inside).collect();
    if module.image.kind == Kind::Executable {
        for load in &module.image.loads {
            let bytes = bytes::part(module.image.bytes, load.offset, load.file_size);
            let bytes = bytes.unwrap_or_default();
            let words = bytes.windows(8).filter_map(|word| u64_at(word, 0));
            found.extend(words.filter(is_inside));
            if !load.exec {
                let halves = bytes.chunks_exact(STEP).filter_map(|half| u32_at(half, 0));
                found.extend(halves.map(u64::from).filter(is_inside));
            }
            module.madvise.read(bytes.len() as u64);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
