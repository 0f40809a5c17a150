//! Reading the entries of jump tables.

use super::Joins;
use super::guard::Limit;
use super::jump_table::{Indirect, Length, Search, Table};
use crate::scan::Module;

/// More entries than this are no jump table.
const MAX_ENTRIES: u64 = 4096;

/// Of more tables than this nobody knows which one it is.
const MAX_TABLES: usize = 16;

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
    fn size(self) -> u64 {
        match self {
            Form::Relative => 4,
            Form::Absolute => 8,
        }
    }

    /// Where an entry leads.
    fn entry(self, module: &Module<'_>, table: u64, at: u64) -> Option<u64> {
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
    fn read(&self, table: u64, by: u64, form: Form, limit: Option<Limit>) -> Entries {
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
enum Entries {
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
fn is_end(va: u64, in_body: &dyn Fn(u64) -> bool) -> bool {
    !in_body(va) && va.checked_sub(1).is_some_and(in_body)
}

/// Whether a function without a name begins there, which may be a part of another one: nothing but its frame would tell, which
/// it may not have.
fn may_be_part(module: &Module<'_>, va: u64) -> bool {
    let function = module.functions.at(va).map(|i| module.functions.get(i));
    function.is_some_and(|f| f.start == va && f.name.is_none() && !f.fragment)
}

/// Whether an address is in a function, or where one ends.
fn is_near_function(module: &Module<'_>, va: u64) -> bool {
    let known = |va| module.functions.at(va).is_some();
    known(va) || va.checked_sub(1).is_some_and(known)
}

/// Addresses of tables.
pub(super) enum Tables {
    /// The jump's table is one of these.
    Known(Vec<u64>),
    /// It is one of these, which needn't all be tables: they are all the addresses that the function makes.
    OneOf(Vec<u64>),
}

impl Search<'_, '_> {
    /// The targets of all tables that it may be. More than are reached do no harm, fewer would.
    pub(super) fn read_all(
        &self,
        tables: &Tables,
        by: u64,
        form: Form,
        (limit, guess): Length,
        joins: &Joins,
    ) -> Indirect {
        let (module, in_body) = (self.module, self.in_body);
        let (Tables::Known(found) | Tables::OneOf(found)) = tables;
        let mut all = Vec::new();
        let mut ends = Vec::new();
        let mut named = Vec::new();
        let mut exact = true;
        for &table in found {
            let begin = table.wrapping_add(by);
            let end_of = |count: u64| begin.wrapping_add(form.size().wrapping_mul(count));
            let guessed = guess
                .filter(|&count| count <= MAX_ENTRIES)
                .and_then(|count| {
                    let limit = Some(Limit::Exactly(count));
                    let Entries::Inside(targets, _) = self.read(table, by, form, limit) else {
                        return None;
                    };
                    let end = end_of(count);
                    let next = form.entry(module, table, end);
                    let more = |t| in_body(t) || is_end(t, in_body) || may_be_part(module, t);
                    let more = next.is_some_and(more);
                    Some((targets, count, more.then_some(end)))
                });
            if let Some((targets, count, end)) = guessed {
                all.extend(targets);
                ends.extend(end);
                named.push((begin..end_of(count), 0));
                continue;
            }
            match self.read(table, by, form, limit) {
                Entries::Inside(targets, count) => {
                    exact &= matches!(limit, Some(Limit::Exactly(_)));
                    all.extend(targets);
                    let end = end_of(count);
                    ends.extend((!exact && self.insns.is_bound(end)).then_some(end));
                    named.push((begin..end_of(count), 0));
                }
                Entries::Functions if found.len() == 1 => return Indirect::Tail,
                Entries::Nowhere if matches!(tables, Tables::OneOf(_)) => continue,
                _ => return Indirect::Unknown,
            }
        }
        all.sort_unstable();
        all.dedup();
        // None of the addresses is an absolute table's.
        let is_one_of = matches!(tables, Tables::OneOf(_));
        let absolute = matches!(form, Form::Absolute);
        match all.is_empty() || named.len() > MAX_TABLES {
            true if is_one_of && absolute && named.is_empty() => Indirect::MayLeave,
            true => Indirect::Unknown,
            false => {
                let is_near = !is_one_of && !joins.left.get();
                Indirect::Table(Table {
                    targets: all,
                    ends,
                    near: is_near.then(|| joins.range.clone()),
                    named,
                    // Addresses may be apart, among others in structures.
                    any: absolute && (is_one_of || !exact),
                    open: !exact,
                })
            }
        }
    }
}
