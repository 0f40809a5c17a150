//! Words and numbers as people read them: each sentence, name, unit and number format once.
//!
//! They are made of the values of a [`Report`](ompfuse_account::Report); views put them where they belong.

mod causes;
mod compare;
mod contexts;
pub(crate) mod distribution;
mod ending;
mod estimates;
mod gates;
mod going;
mod growth;
pub(crate) mod head;
pub(crate) mod history;
pub(crate) mod last;
pub(crate) mod locks;
mod names;
mod notes;
mod overhead;
mod probes;
pub(crate) mod property;
pub(crate) mod ranks;
mod regions;
mod running;
mod series;
mod shell;
pub(crate) mod transfer;
mod tried;
mod uncounted;
pub(crate) mod uneven;
mod unmatched;
pub(crate) mod verdict;

pub use causes::{cause, lower_bound, path, prediction, remedy, schedule, why};
pub(crate) use causes::{cause_place, loss_place, times};
pub use compare::verdict;
pub(crate) use compare::{
    basis, both, causes, certainty, changed, condition, is_told, lone, only_in, pair_place,
    place as compare_place, quantity, value,
};
pub use contexts::{called_from, functions, python_caller};
pub(crate) use gates::explained;
pub use gates::{outcome, outcome_word};
pub(crate) use going::goes_on;
pub use growth::{growth_intervals, growth_verdict};
pub use history::{history_notes, history_verdict};
pub use names::{called, place};
pub(crate) use names::{in_sentence, kind, location, recorded_program, what};
pub use notes::{SUMS_ONLY, notes};
pub use overhead::incomplete;
pub(crate) use probes::took;
pub use probes::{STILL_TIMED, command, most};
pub(crate) use ranks::ended;
pub use ranks::rank_ends;
pub use regions::doubt;
pub(crate) use regions::{doubted, in_part};
pub use running::{lacked, told};
pub(crate) use series::{series_cause, series_location, series_place};
pub use series::{series_notes, series_verdict};
pub use shell::shell_words;
pub use tried::{change, judged, tried};
pub(crate) use uncounted::uncounted;
pub use uncounted::uncounted_share;
pub use unmatched::reason;

/// The kind of a pair of regions.
pub(crate) fn compare_kind(pair: &ompfuse_compare::Pair) -> &'static str {
    compare::kind(&pair.b)
}
