//! Rows by key. Keys are hashes: by their first bits they are dealt to pieces that fit into a processor's cache, and a question
//! about many keys is answered piece by piece. So time per row stays the same however many there are (a radix join, as
//! databases have it: Manegold, Boncz, Kersten 2002).

use super::NONE;
use crate::label::HashIsKey;
use rayon::prelude::*;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};

/// Several rows have the key.
pub(super) const AMBIGUOUS: u32 = u32::MAX - 1;

/// Not found yet.
const OPEN: u32 = u32::MAX - 2;
/// So often in a chunk a row is looked up that isn't where the one before it says: each time some cache lines, which is dear.
const JUMPS: usize = CHUNK / 64;

/// Rows that are dealt together.
const CHUNK: usize = 1 << 16;
/// Keys in a piece, at most twice as many as a rule: half a megabyte.
const PIECE: usize = 1 << 13;
/// Most pieces, as a power of two: each row's neighbours of the same piece stay near.
const MOST: u32 = 12;

/// Rows by key.
#[derive(Debug, Default)]
pub(super) struct Index {
    bits: u32,
    pieces: Vec<HashMap<Key, u32, HashIsKey>>,
}

/// A key in the table: aligned as its halves are, so that an entry has 24 bytes instead of 32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key([u64; 2]);

impl Key {
    fn new(key: u128) -> Key {
        Key([key as u64, (key >> 64) as u64])
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Key([low, high]) = *self;
        state.write_u128(u128::from(high) << 64 | u128::from(low));
    }
}

/// A chunk's keys, piece by piece, each with its row.
struct Dealt {
    keys: Vec<u128>,
    rows: Vec<u32>,
    /// Where each piece's part ends.
    ends: Vec<u32>,
}

impl Dealt {
    fn of(
        chunk: usize,
        rows: usize,
        bits: u32,
        key: &(impl Fn(usize) -> Option<u128> + Sync),
    ) -> Dealt {
        let all = chunk * CHUNK..((chunk + 1) * CHUNK).min(rows);
        let keyed: Vec<(u128, u32)> = all
            .filter_map(|row| Some((key(row)?, row as u32)))
            .collect();
        let mut ends = vec![0u32; 1 << bits];
        for (key, _) in &keyed {
            ends[piece_of(*key, bits)] += 1;
        }
        // Where each piece's part begins; then, as it is filled, where it ends.
        let mut sum = 0;
        for end in &mut ends {
            (*end, sum) = (sum, sum + *end);
        }
        let (mut keys, mut rows) = (vec![0; keyed.len()], vec![0; keyed.len()]);
        for (key, row) in keyed {
            let at = &mut ends[piece_of(key, bits)];
            (keys[*at as usize], rows[*at as usize]) = (key, row);
            *at += 1;
        }
        Dealt { keys, rows, ends }
    }

    /// Where a piece's part is.
    fn part(&self, piece: usize) -> std::ops::Range<usize> {
        let begin = if piece == 0 { 0 } else { self.ends[piece - 1] };
        begin as usize..self.ends[piece] as usize
    }
}

fn piece_of(key: u128, bits: u32) -> usize {
    // In two steps: a shift by all 128 bits isn't one.
    (key >> 64 >> (64 - bits)) as usize
}

/// All rows' keys, dealt to pieces.
fn deal(rows: usize, bits: u32, key: &(impl Fn(usize) -> Option<u128> + Sync)) -> Vec<Dealt> {
    let chunks = (0..rows.div_ceil(CHUNK)).into_par_iter();
    chunks.map(|c| Dealt::of(c, rows, bits, key)).collect()
}

impl Index {
    /// Of so many rows, and the rows whose key another one has too. `key`: a row's.
    pub(super) fn new(
        rows: usize,
        key: impl Fn(usize) -> Option<u128> + Sync,
    ) -> (Index, Vec<u32>) {
        let pieces = rows.div_ceil(PIECE).next_power_of_two();
        let bits = pieces.ilog2().min(MOST);
        let dealt = deal(rows, bits, &key);
        let piece = |piece: usize| {
            let parts = || dealt.iter().map(|d| (d, d.part(piece)));
            let keys = parts().map(|(_, part)| part.len()).sum();
            let mut map: HashMap<Key, u32, HashIsKey> =
                HashMap::with_capacity_and_hasher(keys, HashIsKey);
            let mut repeated = Vec::new();
            for (dealt, part) in parts() {
                for (&key, &row) in dealt.keys[part.clone()].iter().zip(&dealt.rows[part]) {
                    let entry = map.entry(Key::new(key)).or_insert(row);
                    if *entry != row {
                        repeated.push(row);
                        repeated.extend(Some(*entry).filter(|&first| first != AMBIGUOUS));
                        *entry = AMBIGUOUS;
                    }
                }
            }
            (map, repeated)
        };
        let (pieces, repeated): (Vec<_>, Vec<_>) =
            (0..1usize << bits).into_par_iter().map(piece).unzip();
        (Index { bits, pieces }, repeated.concat())
    }

    /// For each of so many rows of another table the row of the same key: [`AMBIGUOUS`] if several have it, [`NONE`] if none has.
    /// `known`: the key of a row of this one, if no other has it. Runs of a program often have XUs in nearly the same order, so the row behind
    /// the last one is tried first.
    pub(super) fn find(
        &self,
        rows: usize,
        key: impl Fn(usize) -> Option<u128> + Sync,
        known: impl Fn(usize) -> Option<u128> + Sync,
    ) -> Vec<u32> {
        let mut out = vec![NONE; rows];
        let chunks = out.par_chunks_mut(CHUNK).enumerate();
        let open: usize = chunks
            .map(|(number, out)| self.follow(number * CHUNK, out, &key, &known))
            .sum();
        if open > 0 {
            let of = &out;
            let found = self.find_all(rows, |row| key(row).filter(|_| of[row] == OPEN));
            for (out, found) in out.iter_mut().zip(found) {
                if *out == OPEN {
                    *out = found;
                }
            }
        }
        out
    }

    /// The rows of a chunk, as long as most are behind each other. Gives the number of those that it leaves [`OPEN`].
    fn follow(
        &self,
        begin: usize,
        out: &mut [u32],
        key: &impl Fn(usize) -> Option<u128>,
        known: &impl Fn(usize) -> Option<u128>,
    ) -> usize {
        let (mut next, mut jumps, mut open) = (begin, JUMPS, 0);
        for (row, out) in (begin..).zip(out) {
            let Some(key) = key(row) else { continue };
            if known(next) == Some(key) {
                *out = next as u32;
                next += 1;
            } else if jumps > 0 {
                jumps -= 1;
                *out = self.get(key);
                if *out < AMBIGUOUS {
                    next = *out as usize + 1;
                }
            } else {
                *out = OPEN;
                open += 1;
            }
        }
        open
    }

    fn get(&self, key: u128) -> u32 {
        let row = self.pieces[piece_of(key, self.bits)].get(&Key::new(key));
        row.copied().unwrap_or(NONE)
    }

    /// As [`Index::find`], piece by piece.
    fn find_all(&self, rows: usize, key: impl Fn(usize) -> Option<u128> + Sync) -> Vec<u32> {
        let dealt = deal(rows, self.bits, &key);
        let piece = |(piece, map): (usize, &HashMap<Key, u32, HashIsKey>)| {
            let keys = dealt.iter().flat_map(|d| &d.keys[d.part(piece)]);
            let found = keys.map(|&key| map.get(&Key::new(key)).copied().unwrap_or(NONE));
            found.collect::<Vec<u32>>()
        };
        let found: Vec<Vec<u32>> = self.pieces.par_iter().enumerate().map(piece).collect();
        // Where each chunk's answers begin in each piece's.
        let mut begins = Vec::with_capacity(dealt.len());
        let mut next = vec![0usize; self.pieces.len()];
        for chunk in &dealt {
            begins.push(next.clone());
            for (piece, next) in next.iter_mut().enumerate() {
                *next += chunk.part(piece).len();
            }
        }
        let mut out = vec![NONE; rows];
        let chunks = out.par_chunks_mut(CHUNK).zip(&dealt).zip(&begins);
        chunks
            .enumerate()
            .for_each(|(number, ((out, dealt), begins))| {
                for (piece, &begin) in begins.iter().enumerate() {
                    let rows = &dealt.rows[dealt.part(piece)];
                    for (&row, &found) in rows.iter().zip(&found[piece][begin..]) {
                        out[row as usize - number * CHUNK] = found;
                    }
                }
            });
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys as hashes are: all bits differ. Every seventh row has none, and some rows have another's.
    fn key(row: usize) -> Option<u128> {
        let number = if row % 1000 == 999 { row - 500 } else { row } as u128;
        let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        (row % 7 != 3).then_some(mixed ^ mixed >> 61)
    }

    #[test]
    fn every_row_is_found_whatever_the_number_of_pieces() {
        for rows in [0, 1, 20, PIECE, 3 * PIECE + 1, 2 * CHUNK + 77] {
            let mut expected: HashMap<u128, Vec<u32>> = HashMap::new();
            for row in 0..rows {
                if let Some(key) = key(row) {
                    expected.entry(key).or_default().push(row as u32);
                }
            }
            let (index, mut repeated) = Index::new(rows, key);
            repeated.sort_unstable();
            let several = expected.values().filter(|r| r.len() > 1).flatten();
            let mut several: Vec<u32> = several.copied().collect();
            several.sort_unstable();
            assert_eq!(repeated, several, "{rows} rows");

            let is_single = |key: &u128| expected.get(key).is_some_and(|rows| rows.len() == 1);
            let known = |row: usize| {
                let key = (row < rows).then(|| key(row)).flatten();
                key.filter(is_single)
            };
            // Asked for in the same order, with some left out, backwards, and for some that aren't there.
            let orders: [&(dyn Fn(usize) -> usize + Sync); 4] = [
                &|row| row,
                &|row| row + row / 50,
                &|row| row ^ (row / 500 % 2 * 5),
                &|row| rows + 100 - row,
            ];
            for (order, at) in orders.iter().enumerate() {
                let asked = |row: usize| key(at(row));
                let found = index.find(rows + 100, asked, known);
                assert_eq!(found, index.find_all(rows + 100, asked));
                for (row, &found) in found.iter().enumerate() {
                    let rows = asked(row).and_then(|key| expected.get(&key));
                    let right = match rows.map(|r| &r[..]) {
                        None => NONE,
                        Some([one]) => *one,
                        Some(_) => AMBIGUOUS,
                    };
                    assert_eq!(found, right, "row {row}, order {order}");
                }
            }
        }
    }
}
