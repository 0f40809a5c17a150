//! How sure a match by label alone is. Runs that count no event twice don't tell how much counts vary. What can be checked is
//! whether the label means the same in both: whether the type's labels come again, and whether a range of that label has the same
//! iterations.

use super::NONE;
use crate::table::XuTable;
use std::collections::HashMap;

/// XUs of a type: in the first run, in the further one, and in both.
type Numbers = [usize; 3];

/// From 0 to 1, for each row of `first` that has one in `cur` (not [`NONE`] in `source`). It is the share of its type's XUs that
/// both runs have, of the run that has more, times the share of the iterations that both did. 0 for the others.
pub(super) fn of_matches(first: &XuTable, cur: &XuTable, source: &[u32]) -> Vec<f32> {
    let by_site = |table: &XuTable, counts: &dyn Fn(usize) -> bool| {
        let mut numbers = vec![0; table.sites.len() + 1];
        for row in (0..table.len()).filter(|&row| counts(row)) {
            numbers[site(table, row)] += 1;
        }
        numbers
    };
    // Several sites can be one type.
    let mut types: HashMap<_, Numbers> = HashMap::new();
    let mut add = |table: &'_ XuTable, which: usize, numbers: Vec<usize>| {
        for (site, number) in numbers.into_iter().enumerate() {
            types.entry(key(table, site)).or_default()[which] += number;
        }
    };
    add(first, 0, by_site(first, &|_| true));
    add(cur, 1, by_site(cur, &|_| true));
    add(first, 2, by_site(first, &|row| source[row] != NONE));
    let shares: Vec<f32> = (0..=first.sites.len())
        .map(|site| {
            let [ours, theirs, both] = types[&key(first, site)];
            both as f32 / ours.max(theirs).max(1) as f32
        })
        .collect();
    let of_row = |(row, &from): (usize, &u32)| match from {
        NONE => 0.0,
        from => shares[site(first, row)] * iterations(first, row, cur, from as usize),
    };
    source.iter().enumerate().map(of_row).collect()
}

/// Position of a row's site; behind the last one where it is not known.
fn site(table: &XuTable, row: usize) -> usize {
    (table.site[row] as usize).min(table.sites.len())
}

fn key(table: &XuTable, site: usize) -> Option<(String, u64, String)> {
    let (module, number, name) = table.sites.get(site)?.sort_key();
    Some((module.to_owned(), number, name.to_owned()))
}

/// The share of a range's iterations that the other one has too; they begin with the same one.
fn iterations(first: &XuTable, row: usize, cur: &XuTable, from: usize) -> f32 {
    let (ours, theirs) = (first.iterations[row], cur.iterations[from]);
    match ours.min(theirs) {
        0 => 1.0, // not known, or none
        least => least as f32 / ours.max(theirs) as f32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::XuTable;

    #[test]
    fn labels_that_come_again_are_surer() {
        let table = |rows: &str| {
            let text = format!("type,label,thread,t0_ns,t1_ns,E\n{rows}");
            XuTable::from_csv(text.as_bytes()).unwrap()
        };
        let mut first =
            table("0x1,0.1,0,0,1,5\n0x1,0.2,0,0,1,5\n0x2,0.3,0,0,1,5\n0x2,0.4,0,0,1,5\n");
        let mut cur = table(
            "0x2,0.3,0,0,1,5\n0x2,0.5,0,0,1,5\n0x2,0.6,0,0,1,5\n0x1,0.2,0,0,1,5\n0x1,0.1,0,0,1,5\n",
        );
        assert_eq!(
            of_matches(&first, &cur, &[4, 3, 0, NONE]),
            [1.0, 1.0, 1.0 / 3.0, 0.0]
        );
        (first.iterations[0], cur.iterations[4]) = (8, 6);
        assert_eq!(of_matches(&first, &cur, &[4, 3, 0, NONE])[..2], [0.75, 1.0]);
    }
}
