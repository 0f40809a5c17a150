//! Places that may be calls of the runtime, found in the bytes at memory speed; decoding confirms them later.

use super::entries::Entries;
use super::image::{Image, u32_at};

/// Addresses of bytes that may be the opcode of a call, jump or load that leads to the runtime, ascending.
pub(crate) fn find(image: &Image<'_>, entries: &Entries<'_>) -> Vec<u64> {
    let targets = Range::of(entries.targets.keys());
    let slots = Range::of(entries.slots.keys());
    let mut out = Vec::new();
    for (va, code) in image.code() {
        for (at, &byte) in code.iter().enumerate() {
            // Distance from this byte to the 4-byte displacement, and whether it leads to a slot.
            let (skip, slot) = match byte {
                0xe8 | 0xe9 => (1, false),
                0x0f if code.get(at + 1).is_some_and(|b| b & 0xf0 == 0x80) => (2, false),
                0xff if matches!(code.get(at + 1), Some(0x15 | 0x25)) => (2, true),
                0x8b if code.get(at + 1).is_some_and(|b| b & 0xc7 == 0x05) => (2, true),
                _ => continue,
            };
            let Some(disp) = u32_at(code, at + skip) else {
                continue;
            };
            let here = va.wrapping_add(at as u64);
            let to = here
                .wrapping_add(skip as u64 + 4)
                .wrapping_add_signed(i64::from(disp.cast_signed()));
            let hit = if slot {
                slots.holds(to) && entries.slots.contains_key(&to)
            } else {
                targets.holds(to) && entries.targets.contains_key(&to)
            };
            if hit && !entries.stubs.contains(&here) {
                out.push(here);
            }
        }
    }
    out
}

/// The span of some addresses, to decide most cases without a look-up.
struct Range {
    low: u64,
    high: u64,
}

impl Range {
    fn of<'a>(addresses: impl Iterator<Item = &'a u64>) -> Range {
        addresses.fold(
            Range {
                low: u64::MAX,
                high: 0,
            },
            |r, &a| Range {
                low: r.low.min(a),
                high: r.high.max(a),
            },
        )
    }

    fn holds(&self, va: u64) -> bool {
        (self.low..=self.high).contains(&va)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::image::{Kind, Load};

    #[test]
    fn calls_jumps_and_loads_that_lead_to_the_runtime() {
        let mut code = vec![0x90u8; 64];
        code[0..5].copy_from_slice(&[0xe8, 0x3b, 0, 0, 0]); // call 0x1040
        code[8..14].copy_from_slice(&[0xff, 0x15, 0xf2, 0x0f, 0, 0]); // call [0x2000]
        code[16..22].copy_from_slice(&[0x0f, 0x84, 0x2a, 0, 0, 0]); // je 0x1040
        code[24..31].copy_from_slice(&[0x4c, 0x8b, 0x35, 0xe1, 0x0f, 0, 0]); // mov r14, [0x2000]
        code[32..37].copy_from_slice(&[0xe8, 0, 0, 0, 0]); // call elsewhere
        let image = Image {
            bytes: &code,
            kind: Kind::Dynamic,
            loads: vec![Load {
                va: 0x1000,
                offset: 0,
                file_size: 64,
                exec: true,
            }],
            sections: Vec::new(),
            dynamic: None,
            interpreter: true,
            eh_frame_hdr: None,
            notes: Vec::new(),
        };
        let mut entries = Entries::default();
        entries.targets.insert(0x1040, 0);
        entries.slots.insert(0x2000, 0);
        assert_eq!(find(&image, &entries), [0x1000, 0x1008, 0x1010, 0x1019]);
    }
}
