//! By type and time.

use super::tally::Tally;
use super::{Combined, Reason, combine_lgl};
use crate::table::XuTable;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Combines runs by type and time (CTC, [XU] section 5): per type, XUs are paired by their order of begin (ties: thread,
/// then row). The result is in the order of types, then of begin in the first run.
pub fn combine_ctc(runs: &[&XuTable]) -> Combined {
    let Some(&first) = runs.first() else {
        return combine_lgl(runs);
    };
    let orders: Vec<BTreeMap<TypeKey<'_>, Vec<u32>>> = runs
        .par_iter()
        .map(|table| by_type_and_time(table))
        .collect();
    let mut types: Vec<&TypeKey<'_>> = orders.iter().flat_map(BTreeMap::keys).collect();
    types.sort_unstable();
    types.dedup();
    let mut sources = vec![vec![]; runs.len()];
    let mut tally = Tally::default();
    for key in types {
        let rows: Vec<&[u32]> = orders
            .iter()
            .map(|o| o.get(key).map_or(&[][..], Vec::as_slice))
            .collect();
        let (shortest, length) = rows
            .iter()
            .map(|r| r.len())
            .enumerate()
            .min_by_key(|&(_, n)| n)
            .expect("runs");
        for (run, rows) in rows.iter().enumerate() {
            sources[run].extend_from_slice(&rows[..length]);
            for &row in &rows[length..] {
                tally.add(
                    run as u16,
                    runs[run],
                    row as usize,
                    Reason::Surplus {
                        run: shortest as u16,
                    },
                );
            }
        }
    }
    let mut table = first.gather(&sources[0]);
    let mut origins = vec![0; table.events.len()];
    for (run, other) in runs.iter().enumerate().skip(1) {
        for column in &other.events {
            if table.event(&column.name).is_none() {
                table.events.push(column.gather(&sources[run]));
                origins.push(run as u16);
            }
        }
    }
    Combined {
        table,
        origins,
        sources,
        column_sources: None,
        unmatched: Tally::list([tally]),
    }
}

/// Order and identity of types over runs.
type TypeKey<'a> = (&'a str, u64, &'a str);

fn by_type_and_time(table: &XuTable) -> BTreeMap<TypeKey<'_>, Vec<u32>> {
    let mut rows_of_site: Vec<Vec<u32>> = vec![vec![]; table.sites.len()];
    let mut unknown = vec![];
    for (row, &site) in table.site.iter().enumerate() {
        rows_of_site
            .get_mut(site as usize)
            .unwrap_or(&mut unknown)
            .push(row as u32);
    }
    let mut types: BTreeMap<TypeKey<'_>, Vec<u32>> = BTreeMap::new();
    for (site, rows) in table.sites.iter().zip(rows_of_site) {
        types.entry(site.sort_key()).or_default().extend(rows);
    }
    types.entry(("", u64::MAX, "")).or_default().extend(unknown);
    types.retain(|_, rows| !rows.is_empty());
    for rows in types.values_mut() {
        rows.par_sort_unstable_by_key(|&row| {
            (table.t0_ns[row as usize], table.thread[row as usize], row)
        });
    }
    types
}
