//! Which of the lines of an instruction is the construct's: functions were inlined around it, the library's and the user's.

use super::Lines;
use super::library::is_librarys;
use crate::scan::draft::Draft;
use ompfuse_format::site::SHARED_CODE;
use ompfuse_format::site::{Frame, Source};
use ompfuse_patterns::Runtime;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Gives the drafts their lines, frames, and, where debug information tells more than symbols, functions.
///
/// The place is in the innermost function of the user's, where there is one. gcc's calls and divisions have the line of
/// whatever stands before them, often a bound that an inlined function of the user's own computes: so that function has to be
/// around another site of the construct too.
pub(crate) fn find(lines: &Lines<'_>, drafts: &mut [Draft]) {
    let outlined = drafts
        .iter()
        .filter(|d| d.is_gomp())
        .filter_map(|d| d.outlined)
        .collect();
    let begun = lines.beginnings(&outlined);
    let mut known = HashMap::new();
    let chains: Vec<Chain> = drafts
        .iter()
        .map(|d| {
            let chain = known.entry(d.line_at);
            chain.or_insert_with(|| lines.frames(d.line_at)).clone()
        })
        .collect();
    let mut regions: HashMap<usize, Vec<usize>> = HashMap::new();
    for (i, draft) in drafts.iter().enumerate() {
        if chains[i].len() > 1 || draft.region.is_some() {
            regions
                .entry(draft.region.unwrap_or(i))
                .or_default()
                .push(i);
        }
    }
    for (i, draft) in drafts.iter_mut().enumerate() {
        let chain = &chains[i];
        // gcc's calls have the line of whatever stands before; the outlined function begins with the construct's.
        let begun = draft
            .outlined
            .filter(|_| draft.is_gomp())
            .and_then(|va| begun.get(&va));
        let is_kmpc = draft.record.is_some_and(|e| e.runtime == Runtime::Kmpc);
        let region = regions
            .get(&draft.region.unwrap_or(i))
            .map_or(&[][..], |r| r);
        let others = region.iter().filter(|&&o| o != i && !is_kmpc);
        let shared = others.map(|&o| common(chain, &chains[o])).max();
        let own = source(chain, shared.unwrap_or(0));
        let is_users = |s: &&Source| !is_librarys(&s.file);
        let users = begun.filter(is_users).or(own.filter(is_users));
        let found = users.or(begun).or(own).cloned();
        draft.source = match draft.rare().line {
            Some(line) => (found.map(|s| s.file))
                .or_else(|| lines.file(draft.line_at))
                .map(|file| Source { file, line }),
            None => found.or(draft.source.take()),
        };
        draft.frames = (chain.len() > 1).then(|| chain.clone());
        let name = chain.last().and_then(|f| f.function.clone());
        draft.debug_name = name.or(draft.debug_name.take());
        if let Some(cycles) = draft.own_rare().and_then(|r| r.cycles.take())
            && are_apart(lines, &cycles)
        {
            let detail = draft.detail.get_or_insert_default();
            let detail = detail.to_mut();
            detail.push_str("; ");
            detail.push_str(SHARED_CODE);
        }
    }
}

/// Functions around an instruction, the innermost first.
type Chain = Arc<[Frame]>;

/// How many of the outermost functions two instructions are both in, as far as names and lines of calls tell.
fn common(x: &Chain, y: &Chain) -> usize {
    let (mut x, mut y) = (x.iter().rev().peekable(), y.iter().rev());
    let mut common = 0;
    while let (Some(a), Some(b)) = (x.next(), y.next()) {
        if a.function.is_none() || a.function != b.function {
            break;
        }
        common += 1;
        // What is inlined in it is the same only if it is called in the same line.
        if a.source != b.source {
            break;
        }
    }
    common
}

/// The line of the innermost function of the user's, or of the innermost one; of those that have a line, and of the outermost
/// `shared`, unless there is none.
fn source(chain: &Chain, shared: usize) -> Option<&Source> {
    let inner = match shared {
        0 => 0,
        shared => chain.len() - shared,
    };
    let mut preferred: Vec<&Source> = chain[inner..]
        .iter()
        .filter_map(|f| f.source.as_ref())
        .collect();
    let others = chain[..inner].iter().filter_map(|f| f.source.as_ref());
    preferred.extend(others);
    let users = preferred.iter().find(|s| !is_librarys(&s.file));
    users.or(preferred.first()).copied()
}

/// Whether two of these groups of instructions have no line in common: both have some.
fn are_apart(lines: &Lines<'_>, groups: &[Vec<u64>]) -> bool {
    let lines = |group: &Vec<u64>| -> BTreeSet<(String, u32)> {
        let all = group.iter().filter_map(|&va| lines.at(va));
        all.map(|s| (s.file, s.line)).collect()
    };
    let groups: Vec<_> = groups.iter().map(lines).filter(|g| !g.is_empty()).collect();
    let apart = |x: &BTreeSet<_>| groups.iter().any(|y| x.is_disjoint(y));
    groups.iter().any(apart)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(frames: &[(&str, &str, u32)]) -> Chain {
        let frame = |&(function, file, line): &(&str, &str, u32)| Frame {
            function: Some(function.into()),
            source: Some(Source {
                file: file.to_owned(),
                line,
            }),
        };
        frames.iter().map(frame).collect()
    }

    fn line(chain: &Chain, shared: usize) -> u32 {
        source(chain, shared).unwrap().line
    }

    #[test]
    fn the_innermost_line_of_the_users_is_the_place() {
        let vector = "/usr/include/c++/12/bits/stl_vector.h";
        let bound = chain(&[
            ("size", vector, 988),
            ("f", "a.cc", 6),
            ("main", "a.cc", 11),
        ]);
        assert_eq!(line(&bound, 0), 6);
        let librarys = chain(&[("size", vector, 988)]);
        assert_eq!(line(&librarys, 0), 988);
        assert!(source(&chain(&[]), 0).is_none());
    }

    #[test]
    fn an_inlined_bound_is_not_the_place() {
        let begin = chain(&[
            ("size", "mine.h", 3),
            ("f", "a.cc", 6),
            ("main", "a.cc", 11),
        ]);
        let next = chain(&[("f", "a.cc", 7), ("main", "a.cc", 11)]);
        assert_eq!(common(&begin, &next), 2);
        assert_eq!(line(&begin, 2), 6);
        // Another instance of the function.
        let other = chain(&[("f", "a.cc", 7), ("main", "a.cc", 12)]);
        assert_eq!(common(&begin, &other), 1);
        assert_eq!(common(&begin, &chain(&[("g", "a.cc", 7)])), 0);
    }
}
