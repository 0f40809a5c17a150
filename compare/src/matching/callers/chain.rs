//! Chains of callers' names, and whether two of them may be of one place.

use ompfuse_account::model::key::Caller;

/// Parts of names of functions that stand between a caller and what it calls, as the language has them: whether they are inlined says
/// nothing.
const BETWEEN: [&str; 6] = [
    "std::function<",
    "std::_Function_handler",
    "std::__invoke",
    "std::invoke",
    "{lambda",
    "operator()",
];

/// The names of a chain, from outside inwards.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Chain<'a> {
    names: Vec<&'a str>,
    /// Calls between these have no name.
    pub(super) is_hidden: bool,
}

/// How an alignment of the beginnings of two chains can end. Bits of a set.
const PAIR: u8 = 1;
const GAP_OF_A: u8 = 2;
const GAP_OF_B: u8 = 4;

impl<'a> Chain<'a> {
    /// `None` if no caller has a name.
    pub(super) fn of(callers: &'a [Caller]) -> Option<Chain<'a>> {
        let named = callers.iter().filter_map(|c| c.function.as_deref());
        let is_between = |name: &&str| BETWEEN.iter().any(|b| name.contains(b));
        let names: Vec<&str> = named.filter(|name| !is_between(name)).collect();
        (!names.is_empty()).then_some(Chain {
            names,
            is_hidden: callers.iter().any(|c| c.address.is_some()),
        })
    }

    /// Whether both may be of one place: they have a name in common, and no gap between common ones has names of both.
    pub(super) fn agrees(&self, other: &Chain<'_>) -> bool {
        let (a, b) = (&self.names[..], &other.names[..]);
        // Most chains begin alike.
        let same = |(x, y): &(&&str, &&str)| x == y;
        let begin = a.iter().zip(b).take_while(same).count();
        let (a, b) = (&a[begin..], &b[begin..]);
        let end = (a.iter().rev().zip(b.iter().rev()))
            .take_while(same)
            .count();
        let (a, b) = (&a[..a.len() - end], &b[..b.len() - end]);
        match a.is_empty() || b.is_empty() {
            true => begin + end > 0,
            false => aligned(a, b),
        }
    }
}

/// Whether names can be aligned without a gap that has some of both.
fn aligned(a: &[&str], b: &[&str]) -> bool {
    // For each beginning of `b` and the one of `a` at hand: how an alignment of them can end.
    let mut before: Vec<u8> = vec![];
    for i in 0..=a.len() {
        let mut row = vec![0; b.len() + 1];
        for j in 0..=b.len() {
            let mut ends = if i == 0 && j == 0 { PAIR } else { 0 };
            if i > 0 && before[j] & (PAIR | GAP_OF_A) != 0 {
                ends |= GAP_OF_A;
            }
            if j > 0 && row[j - 1] & (PAIR | GAP_OF_B) != 0 {
                ends |= GAP_OF_B;
            }
            if i > 0 && j > 0 && a[i - 1] == b[j - 1] && before[j - 1] != 0 {
                ends |= PAIR;
            }
            row[j] = ends;
        }
        before = row;
    }
    before[b.len()] != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agree(a: &str, b: &str) -> bool {
        let callers = |text: &str| -> Vec<Caller> {
            let caller = |name: &str| Caller {
                module: "l.so".to_owned(),
                function: (name != "?").then(|| name.to_owned()),
                address: None,
                is_shared: false,
            };
            text.split_whitespace().map(caller).collect()
        };
        let (a, b) = (callers(a), callers(b));
        let chains = [Chain::of(&a), Chain::of(&b)].map(|c| c.expect("names"));
        assert_eq!(chains[0].agrees(&chains[1]), chains[1].agrees(&chains[0]));
        chains[0].agrees(&chains[1])
    }

    #[test]
    fn what_is_inlined_may_be_absent_and_nothing_may_be_replaced() {
        for (a, b) in [
            ("main f", "main f"),
            ("main f", "main f wrap"),
            ("main f g", "main g"),
            ("main x f y g", "main f g z"),
            (
                "main f",
                "main ? f {lambda()#1} std::function<int>::operator()",
            ),
            ("main a b", "a b c"),
            ("a b a c", "a c"),
        ] {
            assert!(agree(a, b), "{a}; {b}");
        }
        for (a, b) in [
            ("main f", "main g"),
            ("main f wrap", "main g wrap"),
            ("f", "g"),
            ("main f x g", "main f y g"),
            ("x main f", "y main f"),
        ] {
            assert!(!agree(a, b), "{a}; {b}");
        }
    }
}
