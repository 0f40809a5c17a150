//! What is said of functions that count their instructions.

use crate::select::FunctionArgs;
use ompfuse_format::site::{Counted, SiteInfo, Uncounted, without_addresses};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Functions and instructions that are counted, and why others are not.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(crate) struct Coverage {
    functions: usize,
    instructions: u64,
    refused: Vec<Refused>,
}

/// Functions that share a reason.
#[derive(Debug, Serialize, PartialEq, Eq)]
struct Refused {
    reason: String,
    functions: Vec<String>,
    instructions: u64,
}

/// Whether a file has no function with a name that `--count` gives.
pub(crate) fn is_unmatched(counted: Option<&Counted>, wanted: &FunctionArgs) -> bool {
    let is_nothing = counted.is_some_and(|c| c.functions.is_empty() && c.refused.is_empty());
    is_nothing && wanted.counts_some()
}

/// What is said where none of the code that begins or ends a unit is counted, so that no unit has a count; `None`: some is.
pub(crate) fn without_units(
    counted: &Counted,
    sites: &[SiteInfo],
    wanted: &FunctionArgs,
) -> Option<String> {
    let refused = counted.refused.iter().flat_map(|f| &f.sites);
    let without: BTreeSet<u32> = counted.left_out.iter().chain(refused).copied().collect();
    let is_none = !counted.functions.is_empty() && sites.iter().all(|s| without.contains(&s.id));
    let named: Vec<&str> = wanted.count_texts().collect();
    (is_none && wanted.counts_some()).then(|| {
        let each = |option: &str| -> Vec<String> {
            named.iter().map(|name| format!("--{option}={name}")).collect()
        };
        format!(
            "{} is executed by code that isn't counted, so no unit has its count; make it a region, too: {}",
            each("count").join(" "),
            each("functions").join(" ")
        )
    })
}

/// So many functions are named behind a reason.
const NAMED: usize = 3;

impl Coverage {
    pub(crate) fn of(counted: &Counted) -> Coverage {
        let mut by_reason: BTreeMap<String, Vec<&Uncounted>> = BTreeMap::new();
        for function in &counted.refused {
            let reason = without_addresses(&function.reason);
            by_reason.entry(reason).or_default().push(function);
        }
        let refused = by_reason.into_iter().map(|(reason, of_it)| Refused {
            reason,
            functions: of_it.iter().map(|f| f.name.clone()).collect(),
            instructions: of_it.iter().map(|f| u64::from(f.instructions)).sum(),
        });
        Coverage {
            functions: counted.functions.len(),
            instructions: counted.instructions().0,
            refused: refused.collect(),
        }
    }

    /// What of a file isn't counted, in a line; `None`: all is.
    pub(crate) fn lost(&self, file: &str) -> Option<String> {
        let lost: u64 = self.refused.iter().map(|r| r.instructions).sum();
        let functions: usize = self.refused.iter().map(|r| r.functions.len()).sum();
        let share = 100.0 * lost as f64 / (lost + self.instructions).max(1) as f64;
        (functions > 0).then(|| {
            let what = match functions {
                1 => "1 function".to_owned(),
                n => format!("{n} functions"),
            };
            let are = if functions == 1 { "is" } else { "are" };
            format!(
                "{what} of {file} ({share:.1} % of its instructions) {are} not counted; `ompfuse scan --count {file}` names them"
            )
        })
    }

    /// A line for what is counted, and one for each reason.
    pub(crate) fn lines(&self) -> String {
        let lost: u64 = self.refused.iter().map(|r| r.instructions).sum();
        let all = self.instructions + lost;
        let share = match all {
            0 => 0.0,
            all => 100.0 * self.instructions as f64 / all as f64,
        };
        let refused: usize = self.refused.iter().map(|r| r.functions.len()).sum();
        let mut text = format!(
            "instructions counted: {} of {all} in the code ({share:.1} %), in {} of {} functions\n",
            self.instructions,
            self.functions,
            self.functions + refused
        );
        for refused in &self.refused {
            let named = refused.functions.iter().take(NAMED);
            let named: Vec<&str> = named.map(String::as_str).collect();
            let more = match refused.functions.len() - named.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            text += &format!(
                "- not counted, {} instructions: {}: {}{more}\n",
                refused.instructions,
                refused.reason,
                named.join(", ")
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ompfuse_format::site::HexAddress;

    #[test]
    fn functions_with_one_reason_share_a_line() {
        let refused = |name: &str, reason: &str| Uncounted {
            address: HexAddress(1),
            name: name.to_owned(),
            instructions: 5,
            reason: reason.to_owned(),
            sites: vec![],
        };
        let counted = Counted {
            functions: vec![(HexAddress(9), 30)],
            code: vec![(HexAddress(9), 100)],
            refused: vec![
                refused("f", "no room at 0x12"),
                refused("g", "no room at 0x34"),
            ],
            left_out: vec![],
            events: vec![],
        };
        let lines = Coverage::of(&counted).lines();
        let lost = Coverage::of(&counted).lost("x").unwrap();
        assert!(lost.starts_with("2 functions of x (25.0 % of its instructions) are"));
        assert_eq!(
            lines,
            "instructions counted: 30 of 40 in the code (75.0 %), in 1 of 3 functions\n\
             - not counted, 10 instructions: no room: f, g\n"
        );
    }
}
