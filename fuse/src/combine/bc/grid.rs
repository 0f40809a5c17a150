//! The grids of one type: from fine to coarse, pairing what shares a cell.

use super::{Pairs, Relax, nearest};
use rayon::prelude::*;
use std::collections::HashMap;
use xxhash_rust::xxh3::xxh3_128;

use crate::label::HashIsKey;

/// A product of a difference and a number of divisions stays below this: cell indices are exact integers.
const PRODUCT_LIMIT: u64 = 1 << 62;

/// One grid of a type: its divisions per event, the pairs found in it, and what was left of prev.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) d: u64,
    pub(crate) paired: usize,
    pub(crate) left_prev: usize,
}

/// The counts of one common event on both sides, for the XUs of one type in the order in which a cell's are paired.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) prev: Vec<u64>,
    pub(super) cur: Vec<u64>,
    /// Smallest of all.
    pub(super) low: u64,
    /// Largest minus smallest.
    pub(super) range: u64,
}

impl Columns {
    pub(super) fn new(prev: Vec<u64>, cur: Vec<u64>) -> Columns {
        let all = || prev.iter().chain(&cur);
        let low = all().copied().min().unwrap_or(0);
        let range = all().copied().max().unwrap_or(0) - low;
        Columns {
            prev,
            cur,
            low,
            range,
        }
    }

    /// The smallest difference between a prev and a cur count, at least 1.
    fn smallest_difference(&self) -> u64 {
        // Mostly it is small: then only counts near one of the other side need to be sorted.
        let buckets = 64 * self.prev.len().max(self.cur.len()) as u64;
        let shift = 64 - (self.range / buckets.max(1)).leading_zeros();
        let bucket = |value: u64| (value - self.low) >> shift;
        let len = (self.range >> shift) as usize + 1;
        let marks = |values: &[u64]| Marks::new(len, values.iter().map(|&v| bucket(v)));
        let (prev, cur) = rayon::join(|| marks(&self.prev), || marks(&self.cur));
        let near = |values: &[u64], marks: &Marks| -> Vec<u64> {
            let is_near = |&v: &u64| {
                let at = bucket(v);
                marks.get(at) || marks.get(at + 1) || at > 0 && marks.get(at - 1)
            };
            values.iter().copied().filter(is_near).collect()
        };
        let (near_prev, near_cur) =
            rayon::join(|| near(&self.prev, &cur), || near(&self.cur, &prev));
        let smallest = smallest_between(near_prev, near_cur);
        if smallest <= 1 << shift {
            smallest.max(1) // anything nearer were in the same bucket or in the next one
        } else {
            smallest_between(self.prev.clone(), self.cur.clone()).max(1)
        }
    }

    /// The cell's index of a count among `d`.
    #[inline]
    pub(super) fn cell(&self, value: u64, d: u64) -> u64 {
        ((value - self.low) * d / self.range).min(d - 1)
    }
}

/// The smallest difference between two lists' numbers; the largest number if one is empty.
fn smallest_between(mut prev: Vec<u64>, mut cur: Vec<u64>) -> u64 {
    rayon::join(|| prev.sort_unstable(), || cur.sort_unstable());
    let (mut p, mut c, mut smallest) = (0, 0, u64::MAX);
    while let (Some(&a), Some(&b)) = (prev.get(p), cur.get(c)) {
        smallest = smallest.min(a.abs_diff(b));
        if a <= b { p += 1 } else { c += 1 }
    }
    smallest
}

/// A set of small numbers.
struct Marks(Vec<u64>);

impl Marks {
    /// Of numbers below `len`.
    fn new(len: usize, numbers: impl Iterator<Item = u64>) -> Marks {
        let mut words = vec![0; len / 64 + 1];
        for number in numbers {
            words[number as usize / 64] |= 1 << (number % 64);
        }
        Marks(words)
    }

    fn get(&self, number: u64) -> bool {
        let word = self.0.get(number as usize / 64);
        word.is_some_and(|w| w >> (number % 64) & 1 == 1)
    }
}

/// The finest grid: as many divisions as the narrowest event allows, so that its closest counts may share a cell.
fn finest(varying: &[&Columns]) -> u64 {
    let divisions = varying
        .iter()
        .map(|c| c.range / c.smallest_difference())
        .min();
    let widest = varying.iter().map(|c| c.range).max();
    match (divisions, widest) {
        (Some(d), Some(widest)) => d.min(PRODUCT_LIMIT / widest).max(1),
        _ => 1,
    }
}

/// Pairs XUs of a type: positions in the columns. Ends when a side is used up.
pub(super) fn match_type(
    prev_len: usize,
    cur_len: usize,
    columns: &[Columns],
    relax: Relax,
) -> (Pairs, Vec<Level>) {
    if prev_len == 0 || cur_len == 0 {
        return (vec![], vec![]);
    }
    let varying: Vec<&Columns> = columns.iter().filter(|c| c.range > 0).collect();
    let mut prev: Vec<u32> = (0..prev_len as u32).collect();
    let mut cur: Vec<u32> = (0..cur_len as u32).collect();
    let mut pairs = Vec::with_capacity(prev_len.min(cur_len));
    let mut levels = vec![];
    let mut d = finest(&varying);
    loop {
        let before = pairs.len();
        pair_in_cells(&varying, d, &mut prev, &mut cur, &mut pairs);
        levels.push(Level {
            d,
            paired: pairs.len() - before,
            left_prev: prev.len(),
        });
        if prev.is_empty() || cur.is_empty() || d == 1 {
            return (pairs, levels);
        }
        d = match relax {
            Relax::Halve => d / 2,
            Relax::Nn => nearest::next_of_all(&varying, d, &prev, &cur),
            Relax::Paper => nearest::next_of_nearest_cells(&varying, d, &prev, &cur),
        };
    }
}

/// Identity of the cell of each XU in `rows`: exact where the indices fit, else their 128-bit hash.
fn cells(
    varying: &[&Columns],
    d: u64,
    rows: &[u32],
    value: impl Fn(&Columns, u32) -> u64 + Sync,
) -> Vec<u128> {
    let bits = 64 - (d - 1).leading_zeros();
    let fits = bits as usize * varying.len() <= 128;
    rows.par_iter()
        .with_min_len(1 << 14)
        .map_init(Vec::new, |bytes, &row| {
            if fits {
                return varying.iter().fold(0u128, |cell, column| {
                    (cell << bits) | u128::from(column.cell(value(column, row), d))
                });
            }
            bytes.clear();
            for column in varying {
                bytes.extend_from_slice(&column.cell(value(column, row), d).to_le_bytes());
            }
            xxh3_128(bytes)
        })
        .collect()
}

/// Spreads the bits of a cell's identity over a key for hash maps.
fn spread(cell: u128) -> u128 {
    let low = (cell as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let high = ((cell >> 64) as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    let mixed = low ^ low >> 32 ^ high.rotate_left(29);
    // A bijection: the high half stays, the low half is mixed with it invertibly.
    (u128::from((cell >> 64) as u64) << 64) | u128::from(mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Pairs what shares a cell, first with first and so on, and removes it from both lists.
fn pair_in_cells(
    varying: &[&Columns],
    d: u64,
    prev: &mut Vec<u32>,
    cur: &mut Vec<u32>,
    pairs: &mut Pairs,
) {
    let before = pairs.len();
    if d == 1 {
        let n = prev.len().min(cur.len());
        pairs.extend(prev.drain(..n).zip(cur.drain(..n)));
        return;
    }
    let (prev_cells, cur_cells) = rayon::join(
        || cells(varying, d, prev, |c, row| c.prev[row as usize]),
        || cells(varying, d, cur, |c, row| c.cur[row as usize]),
    );
    // In a fine grid hardly any cell has XUs of both sides: what certainly is in no other's cell is passed over.
    let marks = (16 * prev.len().max(cur.len())).next_power_of_two();
    let mark = |cell: u128| spread(cell) as u64 >> (64 - marks.trailing_zeros());
    let of_prev = Marks::new(marks, prev_cells.iter().map(|&c| mark(c)));
    let mut shared: Vec<(u128, u32)> = vec![];
    for (at, &cell) in cur_cells.iter().enumerate() {
        if of_prev.get(mark(cell)) {
            shared.push((cell, at as u32));
        }
    }
    drop(cur_cells);
    let of_cur = Marks::new(marks, shared.iter().map(|&(c, _)| mark(c)));
    const END: u32 = u32::MAX;
    // Per cell the first of its cur XUs that is still free; the others follow by `next`.
    let mut heads: HashMap<u128, u32, HashIsKey> =
        HashMap::with_capacity_and_hasher(shared.len(), HashIsKey);
    let mut next = vec![END; shared.len()];
    for (at, &(cell, _)) in shared.iter().enumerate().rev() {
        let head = heads.entry(spread(cell)).or_insert(END);
        next[at] = *head;
        *head = at as u32;
    }
    let mut is_paired = vec![false; cur.len()];
    let mut at = 0;
    prev.retain(|&row| {
        let cell = prev_cells[at];
        at += 1;
        if !of_cur.get(mark(cell)) {
            return true;
        }
        let Some(head) = heads.get_mut(&spread(cell)).filter(|h| **h != END) else {
            return true;
        };
        let taken = *head as usize;
        *head = next[taken];
        let taken = shared[taken].1 as usize;
        is_paired[taken] = true;
        pairs.push((row, cur[taken]));
        false
    });
    if pairs.len() > before {
        let mut at = 0;
        cur.retain(|_| {
            at += 1;
            !is_paired[at - 1]
        });
    }
}
