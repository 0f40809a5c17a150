//! The mark of the property notes that code goes together with shadow stacks.

use super::error::VerifyError;
use super::ledger::Ledger;
use super::view::View;

/// `PT_NOTE` and `PT_GNU_PROPERTY`.
const NOTES: [u32; 2] = [4, 0x6474_e553];
/// Beginning of a property note: length of the name, then behind that of the contents type and name.
const NAME_LEN: [u8; 4] = [4, 0, 0, 0];
const TYPE_AND_NAME: [u8; 8] = *b"\x05\0\0\0GNU\0";
/// The property, and the length of its value.
const FEATURES: [u8; 8] = [2, 0, 0, 0xc0, 4, 0, 0, 0];
const MARK: u8 = 2;

/// A file in which calls were displaced has the mark nowhere, and no other has lost it.
pub(super) fn check(
    old: &View<'_>,
    new: &View<'_>,
    displaced_calls: bool,
    ledger: &mut Ledger,
) -> Result<(), VerifyError> {
    if !displaced_calls {
        return Ok(());
    }
    let mut places = Vec::new();
    for header in old.headers().iter().filter(|h| NOTES.contains(&h.p_type)) {
        let notes = old.at_offset(header.p_offset, header.p_filesz);
        places.extend(features(notes.unwrap_or_default()).map(|at| header.p_offset + at));
    }
    places.sort_unstable();
    places.dedup();
    for at in places {
        let byte = |view: &View<'_>| view.at_offset(at, 1).map(|b| b[0]);
        if byte(new) != byte(old).map(|b| b & !MARK) {
            return Err(VerifyError::damaged(format!(
                "byte {at:#x} says that calls go together with shadow stacks, which displaced ones don't"
            )));
        }
        ledger.enter(at, 1, "the mark for shadow stacks")?;
    }
    Ok(())
}

/// Where the values of that property are in notes.
fn features(notes: &[u8]) -> impl Iterator<Item = u64> {
    let begins = |at: &usize| {
        let note = &notes[*at..];
        note.starts_with(&NAME_LEN) && note.get(8..16) == Some(&TYPE_AND_NAME)
    };
    let begins = (0..notes.len()).step_by(4).filter(begins);
    begins.flat_map(|at| {
        let len = notes[at + 4..at + 8].iter().rev();
        let len = len.fold(0, |n, &b| n << 8 | usize::from(b));
        let end = notes.len().min(at.saturating_add(16).saturating_add(len));
        let contents = &notes[at + 16..end];
        let is_it =
            move |n: &usize| contents[*n..].starts_with(&FEATURES) && contents.len() >= n + 12;
        let properties = (0..contents.len()).step_by(8).filter(is_it);
        properties.map(move |n| (at + 16 + n + 8) as u64)
    })
}
