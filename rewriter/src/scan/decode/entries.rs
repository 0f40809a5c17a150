//! Reading the entries of jump tables.

use super::guard::Limit;
use super::jump_table::Search;
use crate::scan::Module;

/// More entries than this are no jump table.
pub(super) const MAX_ENTRIES: u64 = 4096;

/// Form of a table's entries.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// 4 bytes, relative to the table.
    Relative,
    /// 8 bytes, an address.
    Absolute,
}

impl Form {
    /// Bytes of an entry.
    pub(super) fn size(self) -> u64 {
        match self {
            Form::Relative => 4,
            Form::Absolute => 8,
        }
    }

    /// Where an entry leads.
    pub(super) fn entry(self, module: &Module<'_>, table: u64, at: u64) -> Option<u64> {
        match self {
            Form::Relative => module
                .image
                .u32(at)
                .map(|d| table.wrapping_add_signed(i64::from(d.cast_signed()))),
            Form::Absolute => module.dynamic.pointer(&module.image, at),
        }
    }
}

impl Search<'_, '_> {
    /// Reads a table's entries, which begin at a distance from where relative ones are relative to.
    pub(super) fn read(&self, table: u64, by: u64, form: Form, limit: Option<Limit>) -> Entries {
        let (module, in_body) = (self.module, self.in_body);
        let mut targets = Vec::new();
        let mut others = false;
        // All that are named are used. Else it ends where an entry leads elsewhere, or with what follows: more do no harm.
        let (count, exact) = match limit {
            Some(Limit::Exactly(count)) => (count, true),
            Some(Limit::AtMost(count)) => (count, false),
            None => (u64::MAX, false),
        };
        let (mut read, mut functions) = (0, 0);
        for n in 0..count {
            self.insns.spend(1);
            if n == MAX_ENTRIES {
                return Entries::Unknown;
            }
            let at = table.wrapping_add(by).wrapping_add(form.size() * n);
            if n > 0 && !exact && self.insns.is_bound(at) {
                break;
            }
            let target = form.entry(module, table, at);
            match target {
                Some(t) if in_body(t) => targets.push(t),
                // A cold part without name and frame, as far as one sees.
                Some(t) if matches!(form, Form::Relative) && may_be_part(module, t) => {
                    others = true
                }
                // Of cases that can't be clang makes entries that lead there.
                Some(t) if !exact && is_end(t, in_body) => {}
                Some(t) if functions == n && module.functions.starts_at(t) => functions += 1,
                // A table may have entries that are never used: where a function ends.
                Some(t) if exact && is_near_function(module, t) => others = true,
                _ if exact => return Entries::Nowhere,
                _ => break,
            }
            read = n + 1;
        }
        targets.sort_unstable();
        targets.dedup();
        match targets.is_empty() {
            true if functions > 0 => Entries::Functions,
            _ if others || functions > 0 => Entries::Unknown,
            true => Entries::Nowhere,
            false => Entries::Inside(targets, read),
        }
    }
}

/// Where the entries of a table lead.
pub(super) enum Entries {
    /// To these places in the function, as many entries.
    Inside(Vec<u64>, u64),
    /// To functions.
    Functions,
    /// Some to other functions, or there are too many.
    Unknown,
    /// Some to no code: it is no table of this jump.
    Nowhere,
}

/// Whether a part of the function ends there.
pub(super) fn is_end(va: u64, in_body: &dyn Fn(u64) -> bool) -> bool {
    !in_body(va) && va.checked_sub(1).is_some_and(in_body)
}

/// Whether a function without a name begins there, which may be a part of another one: nothing but its frame would tell, which
/// it may not have.
pub(super) fn may_be_part(module: &Module<'_>, va: u64) -> bool {
    let function = module.functions.at(va).map(|i| module.functions.get(i));
    function.is_some_and(|f| f.start == va && f.name.is_none() && !f.fragment)
}

/// Whether an address is in a function, or where one ends.
fn is_near_function(module: &Module<'_>, va: u64) -> bool {
    let known = |va| module.functions.at(va).is_some();
    known(va) || va.checked_sub(1).is_some_and(known)
}
