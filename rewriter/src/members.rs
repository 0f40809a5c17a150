//! What lies at an offset in a variable, from the types of its debug information: `table[5].m`.

use crate::debug::DebugFiles;
use crate::scan::source::{AllSections, Bytes};
use gimli::{AttributeValue, DebuggingInformationEntry, UnitOffset};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

type Unit<'a> = gimli::Unit<Bytes<'a>>;
type Entry<'a> = DebuggingInformationEntry<Bytes<'a>>;

/// Types in types that are followed; no program has so many, but a damaged file may have a type in itself.
const DEEPEST: usize = 32;

/// Types that are locks: what is in them is the C library's.
const LOCKS: [&str; 9] = [
    "pthread_mutex_t",
    "pthread_spinlock_t",
    "mtx_t",
    "omp_lock_t",
    "omp_nest_lock_t",
    "mutex",
    "timed_mutex",
    "recursive_mutex",
    "recursive_timed_mutex",
];

/// Names what lies in variables: by a variable's link-time address, the offsets that are asked for. The text stands behind the variable's
/// name (`[5].m`); it is empty at the beginning of a variable that is a lock itself. What no type tells is missing.
pub(crate) fn members(
    bytes: &[u8],
    files: DebugFiles<'_>,
    wanted: &BTreeMap<u64, Vec<u64>>,
) -> HashMap<(u64, u64), String> {
    let mut found = HashMap::new();
    let sections = AllSections::read(bytes, files);
    let Some(dwarf) = sections.dwarf().filter(|_| !wanted.is_empty()) else {
        return found;
    };
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(unit) = dwarf.unit(header) else {
            continue;
        };
        let mut entries = unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            let address = address(&dwarf, &unit, entry);
            let Some((address, offsets)) = address.and_then(|at| wanted.get_key_value(&at)) else {
                continue;
            };
            let declared = referred(entry, gimli::DW_AT_specification);
            let declared = declared.and_then(|at| unit.entry(at).ok());
            let kind = of_type(entry).or_else(|| of_type(declared.as_ref()?));
            for &offset in offsets {
                let text = kind.and_then(|kind| Walk::new(&dwarf, &unit, offset).text(kind));
                found.extend(text.map(|text| ((*address, offset), text)));
            }
        }
        if wanted.keys().all(|at| found.keys().any(|(of, _)| of == at)) {
            break;
        }
    }
    found
}

/// Where a variable is, if it has one address.
fn address(dwarf: &gimli::Dwarf<Bytes<'_>>, unit: &Unit<'_>, entry: &Entry<'_>) -> Option<u64> {
    if entry.tag() != gimli::DW_TAG_variable {
        return None;
    }
    let AttributeValue::Exprloc(location) = entry.attr_value(gimli::DW_AT_location)? else {
        return None;
    };
    let mut operations = location.operations(unit.encoding());
    match (operations.next(), operations.next()) {
        (Ok(Some(gimli::Operation::Address { address })), Ok(None)) => Some(address),
        (Ok(Some(gimli::Operation::AddressIndex { index })), Ok(None)) => {
            dwarf.address(unit, index).ok()
        }
        _ => None,
    }
}

fn referred(entry: &Entry<'_>, what: gimli::DwAt) -> Option<UnitOffset> {
    match entry.attr_value(what)? {
        AttributeValue::UnitRef(at) => Some(at),
        _ => None,
    }
}

fn of_type(entry: &Entry<'_>) -> Option<UnitOffset> {
    referred(entry, gimli::DW_AT_type)
}

fn number(entry: &Entry<'_>, what: gimli::DwAt) -> Option<u64> {
    entry.attr_value(what)?.udata_value()
}

/// The way from a variable to what lies at an offset in it.
struct Walk<'d, 'a> {
    dwarf: &'d gimli::Dwarf<Bytes<'a>>,
    unit: &'d Unit<'a>,
    /// What is left of it.
    offset: u64,
    text: String,
}

impl<'d, 'a> Walk<'d, 'a> {
    fn new(dwarf: &'d gimli::Dwarf<Bytes<'a>>, unit: &'d Unit<'a>, offset: u64) -> Walk<'d, 'a> {
        Walk {
            dwarf,
            unit,
            offset,
            text: String::new(),
        }
    }

    /// What is there in a variable of this type. Where no lock is found, what begins there and has the most in it.
    fn text(mut self, mut kind: UnitOffset) -> Option<String> {
        let mut first = None;
        for _ in 0..DEEPEST {
            let entry = self.unit.entry(kind).ok()?;
            let is_array = entry.tag() == gimli::DW_TAG_array_type;
            let is_lock = (self.name(&entry)).is_some_and(|name| LOCKS.contains(&name));
            if is_lock && self.offset == 0 {
                return Some(self.text);
            }
            if self.offset == 0 && !is_array && first.is_none() {
                first = Some(self.text.clone());
            }
            let inner = match entry.tag() {
                gimli::DW_TAG_typedef
                | gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_atomic_type => of_type(&entry),
                gimli::DW_TAG_array_type => self.element(&entry),
                gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_union_type => self.member(kind),
                _ => None,
            };
            match inner {
                Some(inner) => kind = inner,
                None => return first,
            }
        }
        None
    }

    fn name(&self, entry: &Entry<'a>) -> Option<&'a str> {
        let name = entry.attr_value(gimli::DW_AT_name)?;
        let name = self.dwarf.attr_string(self.unit, name).ok()?;
        std::str::from_utf8(name.slice()).ok()
    }

    /// Goes to an array's element.
    fn element(&mut self, array: &Entry<'a>) -> Option<UnitOffset> {
        let kind = of_type(array)?;
        let mut size = self.size(kind, 0).filter(|&size| size > 0)?;
        let mut sizes = vec![];
        for &count in self.counts(array.offset())?.iter().rev() {
            sizes.push(size);
            size = size.checked_mul(count.max(1))?;
        }
        for size in sizes.into_iter().rev() {
            write!(self.text, "[{}]", self.offset / size).ok()?;
            self.offset %= size;
        }
        Some(kind)
    }

    /// The numbers of elements, by dimension.
    fn counts(&self, array: UnitOffset) -> Option<Vec<u64>> {
        let mut tree = self.unit.entries_tree(Some(array)).ok()?;
        let mut children = tree.root().ok()?.children();
        let mut counts = vec![];
        while let Ok(Some(child)) = children.next() {
            let range = child.entry();
            if range.tag() == gimli::DW_TAG_subrange_type {
                let last = || number(range, gimli::DW_AT_upper_bound)?.checked_add(1);
                // Of the first dimension it may be missing.
                let count = number(range, gimli::DW_AT_count).or_else(last);
                counts.push(count.unwrap_or(1));
            }
        }
        Some(counts)
    }

    /// Goes to the member of a structure that the offset is in.
    fn member(&mut self, structure: UnitOffset) -> Option<UnitOffset> {
        let mut tree = self.unit.entries_tree(Some(structure)).ok()?;
        let mut children = tree.root().ok()?.children();
        let mut best: Option<(u64, UnitOffset, Option<&'a str>)> = None;
        while let Ok(Some(child)) = children.next() {
            let member = child.entry();
            let is_base = member.tag() == gimli::DW_TAG_inheritance;
            let is_static = member.attr_value(gimli::DW_AT_external).is_some();
            if (member.tag() != gimli::DW_TAG_member && !is_base) || is_static {
                continue;
            }
            // A union's members have none.
            let at = number(member, gimli::DW_AT_data_member_location).unwrap_or(0);
            let Some(kind) = of_type(member).filter(|_| at <= self.offset) else {
                continue;
            };
            let size = self.size(kind, 0).unwrap_or(0);
            if self.offset - at < size && best.is_none() {
                best = Some((at, kind, self.name(member).filter(|_| !is_base)));
            }
        }
        let (at, kind, name) = best?;
        self.offset -= at;
        if let Some(name) = name {
            write!(self.text, ".{name}").ok()?;
        }
        Some(kind)
    }

    /// Bytes of a type.
    fn size(&self, kind: UnitOffset, depth: usize) -> Option<u64> {
        let entry = self.unit.entry(kind).ok()?;
        if let Some(size) = number(&entry, gimli::DW_AT_byte_size) {
            return Some(size);
        }
        let inner = self.size(of_type(&entry).filter(|_| depth < DEEPEST)?, depth + 1)?;
        match entry.tag() {
            gimli::DW_TAG_array_type => {
                let counts = self.counts(kind)?;
                counts.iter().try_fold(inner, |all, &n| all.checked_mul(n))
            }
            _ => Some(inner),
        }
    }
}
