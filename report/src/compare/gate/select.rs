//! Which regions and which quantity are meant.

use crate::compare::side::{Quantity, Sample};
use crate::model::key::{Caller, RegionKey};
use ompfuse_fuse::names::{is_called, is_path_end, matches_glob};
use std::collections::BTreeMap;

/// Whether a pattern is a region's function, `FILE:LINE`, `FILE`, its module, the name that the source gives it, or one of its callers in
/// its module, where these tell what it is.
pub(crate) fn matches(pattern: &str, key: &RegionKey) -> bool {
    let of_line = || {
        let (file, line) = pattern.rsplit_once(':')?;
        let is_line = matches_glob(line, &key.line?.to_string());
        Some(is_line && is_path_end(file, key.file.as_deref()?))
    };
    let is_named =
        |name: &Option<String>| name.as_deref().is_some_and(|n| matches_glob(pattern, n));
    let calls = |c: &Caller| {
        let function = c.function.as_deref().filter(|_| c.module == key.module);
        function.is_some_and(|f| is_called(pattern, f))
    };
    key.callers.iter().any(calls)
        || key
            .function
            .as_deref()
            .is_some_and(|f| is_called(pattern, f))
        || is_named(&key.name)
        || key.file.as_deref().is_some_and(|f| is_path_end(pattern, f))
        || matches_glob(pattern, &key.module)
        || of_line() == Some(true)
}

/// Whether a quantity without a selector is the program's.
pub(super) fn is_of_program(quantity: &Quantity) -> bool {
    !matches!(
        quantity,
        Quantity::Executions
            | Quantity::Imbalance
            | Quantity::MaxUnit
            | Quantity::MeanUnit
            | Quantity::MedianUnit
            | Quantity::EventPerUnit(_)
    )
}

/// The event as a simulator or the program itself counts it, where that was done in all of these and is exact; of the program and of parallel regions the wall time for
/// their time. `is_whole`: whether it is one of these.
pub(super) fn meant(
    quantity: &Quantity,
    is_whole: bool,
    values: [&BTreeMap<Quantity, Sample>; 2],
) -> Quantity {
    let names = |name: &str| [format!("sim-{name}"), format!("{name}:exact")];
    let others = match quantity {
        Quantity::Time if is_whole => return Quantity::Wall,
        Quantity::Event(name) => names(name).map(Quantity::Event),
        Quantity::EventPerUnit(name) => names(name).map(Quantity::EventPerUnit),
        _ => return quantity.clone(),
    };
    let is_counted = |q: &Quantity| values.iter().all(|v| v.contains_key(q));
    let mut others = others.into_iter();
    let exact = others.find(|q| q.is_exact() && is_counted(q));
    exact.unwrap_or_else(|| quantity.clone())
}
