//! Which arguments of MPI's functions tell what a call hands over (`data/mpi-arguments.toml`).

use crate::{Entry, PatternError};
use ompfuse_format::abi::handed::{Class, Handed, place};
use ompfuse_format::abi::{NO_ARG, Probe};
use serde::Deserialize;
use std::collections::HashMap;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RawClass {
    Message,
    Exact,
    Broadcast,
    Reduce,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    ReduceScatter,
}

impl RawClass {
    fn class(&self) -> Class {
        match self {
            RawClass::Message => Class::Message,
            RawClass::Exact => Class::Exact,
            RawClass::Broadcast => Class::Broadcast,
            RawClass::Reduce => Class::Reduce,
            RawClass::Gather => Class::Gather,
            RawClass::Scatter => Class::Scatter,
            RawClass::Allgather => Class::Allgather,
            RawClass::Alltoall => Class::Alltoall,
            RawClass::ReduceScatter => Class::ReduceScatter,
        }
    }
}

/// Functions whose arguments tell the same.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawGroup {
    class: RawClass,
    #[serde(default)]
    blocking: bool,
    out: Option<u8>,
    #[serde(default)]
    many_out: bool,
    r#in: Option<u8>,
    #[serde(default)]
    many_in: bool,
    to: Option<u8>,
    from: Option<u8>,
    communicator: Option<u8>,
    status: Option<u8>,
    in_place: Option<u8>,
    functions: Vec<String>,
}

#[derive(Deserialize)]
struct RawGroups {
    group: Vec<RawGroup>,
}

impl RawGroup {
    fn args(&self) -> [u8; 8] {
        let handed = Handed {
            class: self.class.class(),
            by_address: false,
            many_out: self.many_out,
            many_in: self.many_in,
            is_blocking: self.blocking,
        };
        let mut args = [NO_ARG; 8];
        args[place::HANDED] = handed.byte();
        for (at, position) in [
            (place::OUT, self.out),
            (place::IN, self.r#in),
            (place::TO, self.to),
            (place::FROM, self.from),
            (place::COMMUNICATOR, self.communicator),
            (place::STATUS, self.status),
            (place::IN_PLACE, self.in_place),
        ] {
            args[at] = position.unwrap_or(NO_ARG);
        }
        args
    }
}

/// Gives the functions of the data file their arguments.
///
/// # Errors
/// [`PatternError::Toml`], and [`PatternError::UnknownFunction`] where there is no record of a function.
pub(crate) fn add(text: &str, entries: &mut [Entry]) -> Result<(), PatternError> {
    let groups: RawGroups = toml::from_str(text)?;
    let at: HashMap<String, usize> = (0..)
        .zip(&*entries)
        .map(|(at, e)| (e.symbol.clone(), at))
        .collect();
    for group in groups.group {
        for function in &group.functions {
            let unknown = || PatternError::UnknownFunction(function.clone());
            let usual = at.get(function).copied().ok_or_else(unknown)?;
            let large = at.get(&format!("{function}_c")).copied();
            for (at, width) in [(Some(usual), 4), (large, 8)] {
                if let Some(entry) = at.and_then(|at| entries.get_mut(at)) {
                    entry.probe = Some(Probe::Message);
                    entry.args = group.args();
                    entry.width = width;
                }
            }
        }
    }
    Ok(())
}

/// How Fortran calls a function: by addresses. `is_f08`: by a name of `mpi_f08`, whose `MPI_IN_PLACE` and `MPI_STATUS_IGNORE`
/// are others.
pub(crate) fn of_fortran(entry: &Entry, is_f08: bool) -> Entry {
    let mut entry = entry.clone();
    let Some(handed) = Handed::from_byte(entry.args[place::HANDED]) else {
        return entry;
    };
    let is_told = entry.width == 4 && !(is_f08 && entry.args[place::IN_PLACE] != NO_ARG);
    if !is_told {
        entry.probe = Some(Probe::Enclosed);
        entry.args = [NO_ARG; 8];
        entry.width = 0;
        return entry;
    }
    let by_address = true;
    entry.args[place::HANDED] = Handed {
        by_address,
        ..handed
    }
    .byte();
    if is_f08 {
        entry.args[place::STATUS] = NO_ARG;
    }
    entry
}
