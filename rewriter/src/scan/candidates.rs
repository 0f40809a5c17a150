//! Places that may be calls of the runtime, found in the bytes at memory speed; decoding confirms them later.

use super::bytes::u32_at;
use super::entries::Entries;
use super::image::Image;
use super::search::{self, Span};

/// Addresses of bytes that may be the opcode of a call, jump or load that leads to the runtime, ascending.
pub(crate) fn find(image: &Image<'_>, entries: &Entries<'_>) -> Vec<u64> {
    let spans: Vec<Span> = [
        Span::of(entries.targets.keys().copied()),
        Span::of(entries.slots.keys().copied()),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut out = Vec::new();
    for (va, code) in image.code() {
        out.extend(search::displacements(code, va, &spans, |hit| {
            let (len, slot) = opcode(code, hit.at)?;
            let here = va.wrapping_add((hit.at - len) as u64);
            let leads = match slot {
                true => entries.slots.contains_key(&hit.to),
                false => entries.targets.contains_key(&hit.to),
            };
            (leads && !entries.stubs.contains(&here)).then_some(here)
        }));
    }
    out
}

/// The number of the runtime's function that a candidate leads to, if it is one.
pub(crate) fn callee(image: &Image<'_>, entries: &Entries<'_>, va: u64) -> Option<usize> {
    let code = image.rest(va)?;
    // The displacement is behind one byte of the opcode, or two.
    [1, 2].into_iter().find_map(|at| {
        let (len, slot) = opcode(code, at).filter(|&(len, _)| len == at)?;
        let end = va.wrapping_add(len as u64 + 4);
        let to = end.wrapping_add_signed(i64::from(u32_at(code, len)?.cast_signed()));
        let all = if slot {
            &entries.slots
        } else {
            &entries.targets
        };
        all.get(&to).copied()
    })
}

/// Length of the opcode before the displacement at this offset, if it may be that of a call, jump or load, and whether
/// it leads to a slot.
fn opcode(code: &[u8], at: usize) -> Option<(usize, bool)> {
    let before = |n: usize| code.get(at.checked_sub(n)?).copied();
    let last = before(1)?;
    if matches!(last, 0xe8 | 0xe9) {
        return Some((1, false));
    }
    match before(2)? {
        0x0f if last & 0xf0 == 0x80 => Some((2, false)),
        0xff if matches!(last, 0x15 | 0x25) => Some((2, true)),
        0x8b if last & 0xc7 == 0x05 => Some((2, true)),
        _ => None,
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
                has_zeros: false,
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
