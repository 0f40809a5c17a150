//! The tables of what is added to a thread's counts.

use super::{IncrementEntry, Tables, TermEntry, number};
use crate::describe::{INCREMENT_LEN, TERM_LEN};
use crate::verify::error::VerifyError;
use crate::verify::view::View;
use ompfuse_format::event::exact;
use ompfuse_format::site::Counted;

impl Tables<'_> {
    pub(super) fn read_increments(&mut self, new: &View<'_>) -> Result<(), VerifyError> {
        let damaged = || VerifyError::damaged("the table of constants is damaged");
        let word = |raw: &[u8], at, len| number(raw, at, len).ok_or_else(damaged);
        let count = word(self.in_read_only(new, self.tables_end, 8)?, 0, 8)?;
        let len = count.checked_mul(INCREMENT_LEN).ok_or_else(damaged)?;
        let counted = self.description.binary.counted.as_ref();
        let set = counted.map_or(0, Counted::set);
        if self.counts != u64::from(set) * u64::from(count > 0) {
            return Err(damaged());
        }
        let table = self.in_read_only(new, self.tables_end + 8, len)?;
        self.tables_end += 8 + len;
        for raw in table.chunks_exact(INCREMENT_LEN as usize) {
            let mut amounts = [0; exact::COUNT];
            for (n, amount) in amounts.iter_mut().enumerate() {
                *amount = (word(raw, 8 + 4 * n, 4)? as u32).cast_signed();
                if *amount != 0 && set >> n & 1 == 0 {
                    return Err(damaged());
                }
            }
            let rest = 8 + 4 * exact::COUNT;
            let scratch = u8::try_from(word(raw, rest, 2)?).map_err(|_| damaged())?;
            let entry = IncrementEntry {
                at: word(raw, 0, 8)?,
                place: word(raw, rest + 2, 2)?,
                amounts,
                scratch: Some(scratch).filter(|&r| r != u8::MAX),
                term: None,
            };
            let last = self.increments.last().map(|i| (i.at, i.place));
            if word(raw, rest + 4, 4)? != 0
                || entry.place > 2
                || last >= Some((entry.at, entry.place))
            {
                return Err(damaged());
            }
            self.increments.push(entry);
        }
        self.read_terms(new, set)
    }

    /// Those of the constants beside which multiples of a register are added.
    fn read_terms(&mut self, new: &View<'_>, set: u32) -> Result<(), VerifyError> {
        let damaged = || VerifyError::damaged("the table of multiples is damaged");
        let word = |raw: &[u8], at, len| number(raw, at, len).ok_or_else(damaged);
        let count = word(self.in_read_only(new, self.tables_end, 8)?, 0, 8)?;
        let len = count.checked_mul(TERM_LEN).ok_or_else(damaged)?;
        let table = self.in_read_only(new, self.tables_end + 8, len)?;
        self.tables_end += 8 + len;
        for raw in table.chunks_exact(TERM_LEN as usize) {
            let mut factors = [0; exact::COUNT];
            for (n, factor) in factors.iter_mut().enumerate() {
                *factor = word(raw, 8 + 8 * n, 8)?.cast_signed();
                // What is left of a sum must tell that it has not everything.
                if *factor != 0 && set >> n & 1 == 0 || *factor & exact::TORN != 0 {
                    return Err(damaged());
                }
            }
            let term = TermEntry {
                register: u8::try_from(word(raw, 4, 2)?).map_err(|_| damaged())?,
                spare: raw[6],
                kept: usize::from(raw[7]),
                factors,
            };
            let number = word(raw, 0, 4)? as usize;
            let entry = self.increments.get_mut(number).ok_or_else(damaged)?;
            if term.kept > 2 || entry.scratch.is_none() || entry.term.replace(term).is_some() {
                return Err(damaged());
            }
        }
        Ok(())
    }
}
