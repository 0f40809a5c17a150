//! Why constructs have no probe.

use std::borrow::Cow;

/// Why a construct has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    // Loops with chunks.
    Uncompared,
    SeveralEnds,
    Unclear,
    InMemory,
    Forms,
    Irreducible,
    // Loops without.
    NotOurs,
    Untested,
    HoistedTest,
    HoistedDivision,
    TestInIterations,
    OthersBetween,
    SeveralTests,
    Again(Lost),
    BeginsBeforeTest,
    /// The loop whose bounds it has, has none.
    NoShare,
    /// It shares bounds with the loop whose division is at this address, but isn't followed.
    Shares(u64, Lost),
    // All.
    NoEnd(Endless),
}

/// Why a loop with the bounds of another isn't followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    NoShare,
    OtherWays,
    Repeated,
    /// Whether it is repeated isn't known.
    Effort,
    TooMany,
    OthersBefore,
    Untested,
}

/// Why there is no place for a construct's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endless {
    Never,
    OthersFollow,
    Copies,
    JumpsAway,
    Apart,
    Undecided,
}

impl Why {
    /// The same in words.
    pub(super) fn told(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Why::Uncompared => "its first chunk begins without a comparison",
            Why::SeveralEnds => "its chunks end in several places",
            Why::Unclear => "its comparison with the bound is of a form without probe",
            Why::InMemory => "it is compared with memory that no register leads to",
            Why::Forms => "it has other forms that its chunks may be executed in",
            Why::Irreducible => "its chunks' cycle is entered in several places",
            Why::NotOurs => "a loop divided by hand, or in a form that is not gcc's",
            Why::Untested => "its diverging branch wasn't found",
            Why::HoistedTest => "its test is hoisted out of a cycle that the loop is in",
            Why::HoistedDivision => "its division is hoisted out of a cycle that the loop is in",
            Why::TestInIterations => "its test is in the cycle of its iterations",
            Why::OthersBetween => "another construct stands between its division and the loop",
            Why::SeveralTests => "its diverging branch exists several times",
            Why::Again(lost) => lost.told(),
            Why::BeginsBeforeTest => "its iterations begin in front of its test",
            Why::NoShare => "the loop whose bounds it has has no probe",
            Why::Shares(id, lost) => {
                let why = lost.told();
                return format!("it shares bounds with a loop at {id:#x}: {why}").into();
            }
            Why::NoEnd(endless) => return format!("no end: {}", endless.told()).into(),
        })
    }
}

impl Lost {
    fn told(self) -> &'static str {
        match self {
            Lost::NoShare => "its bounds are those of a loop without probe",
            Lost::OtherWays => "it has no test of its own, and other paths lead to it",
            Lost::Repeated => "it is repeated without its test",
            Lost::Effort => {
                "its function is too large to tell whether it is repeated without its test"
            }
            Lost::TooMany => "too many loops have the same bounds and one test",
            Lost::OthersBefore => "it has no test of its own, and other code stands before it",
            Lost::Untested => "its test wasn't found",
        }
    }
}

impl Endless {
    fn told(self) -> &'static str {
        match self {
            Endless::Never => "control never leaves it",
            Endless::OthersFollow => "other constructs follow before its paths meet again",
            Endless::Copies => "the code behind it exists several times",
            Endless::JumpsAway => "its last action is a jump to another function",
            Endless::Apart => "its paths don't meet again",
            Endless::Undecided => "nothing branches on its result",
        }
    }
}
