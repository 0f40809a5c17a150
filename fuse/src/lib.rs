//! From runs to one profile: reading runs, planning event sets, combination strategies, profiles.
//!
//! Pure functions of bytes and values: nothing here opens a file or reads a clock.
//!
//! ```text
//! files of a run folder ──RunFiles::from_folder──> RunFiles ──Run::read──> Run ──Profile::of_run──┐
//! another recorder's CSV ──XuTable::from_csv──> XuTable ──Profile::of_table──────────────────────┤
//!                                                                                                v
//!                         Parquet bytes <──to_parquet── Profile <──Combiner (LGL, CTC)── Profiles
//! ```
//!
//! * [`account`]: what shares of a run are of.
//! * [`plan`]: event sets.
//! * [`run`]: a recorded run as tables, with what was lost or broken.
//! * [`samples`]: where threads were, by region, function and line.
//! * [`label`], [`table`]: XUs and their identity.
//! * [`combine`]: strategies on tables, and which of them is the default one's.
//! * [`evaluate`]: how good a combined profile is.
//! * [`names`]: functions' names as people know them.
//! * [`spread`]: how evenly work is spread over threads.
//! * [`summary`]: what reports need beside the XUs; the same sums of a run while it goes on.
//! * [`span`]: work, span, replays of other schedules, what threads waited for.
//! * [`exchange`]: units by groups, for engines that run on many machines.
//! * [`profile`]: XUs and summary together; the Parquet file.
#![forbid(unsafe_code)]

pub mod account;
pub mod combine;
pub mod evaluate;
pub mod exchange;
pub mod label;
pub mod names;
pub mod plan;
pub mod profile;
pub mod run;
pub mod samples;
pub mod span;
pub mod spread;
pub mod summary;
pub mod table;
#[cfg(any(test, feature = "test-support"))]
pub mod testing;

pub use combine::{
    BcError, CellOrder, Combined, JointJoin, LglJoin, Reason, Relax, Unmatched, combine_bc,
    combine_ctc, combine_default, combine_joint, combine_lgl,
};
pub use evaluate::{Evaluation, EvaluationError, References};
pub use label::{Label, LabelHash, LabelId, Labels};
pub use plan::{plan_bc, plan_joint, plan_lgl, with_first_again};
pub use profile::{
    Combiner, Profile, ProfileError, ProfileReader, ProfileWriter, Strategy, combine_instances,
};
pub use run::{Health, Problem, Run, RunError, RunFiles};
pub use summary::Summary;
pub use table::{EventColumn, Site, TableError, XuTable};
