//! Which regions and which quantity are meant.

use crate::side::{Quantity, Sample};
use ompfuse_account::model::key::RegionKey;
use ompfuse_format::Construct;
use ompfuse_fuse::names::{Place, Selector};
use std::collections::BTreeMap;

/// Whether a region is chosen: by its place, its names, or one of its callers in its module, where these tell what it is.
pub(crate) fn matches(selector: &Selector, key: &RegionKey) -> bool {
    let is_user = key.construct == Construct::UserRegion;
    let callers = key.callers.iter().filter(|c| c.module == key.module);
    let callers = callers.filter_map(|c| c.function.as_deref());
    let function = key.function.as_deref().filter(|_| !is_user);
    selector.matches(&Place {
        module: &key.module,
        construct: Some(key.construct),
        file: key.file.as_deref(),
        line: key.line,
        function: function.or(key.name.as_deref()),
        names: callers
            .chain(key.name.as_deref())
            .chain(key.function.as_deref())
            .collect(),
        ..Place::default()
    })
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
