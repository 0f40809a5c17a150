//! The strategies as the command line names them: of `combine`, and of what records runs to be combined.

use clap::ValueEnum;

/// Defaults of `--relax` and `--seed`.
pub(crate) const RELAX: Relax = Relax::Halve;
pub(crate) const SEED: u64 = 1;

/// The strategies of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strategy {
    /// joint if a run counts new events together with events of earlier runs, else lgl
    Default,
    /// By label
    Lgl,
    /// By label and behaviour together; runs share events with the first
    Joint,
    /// By behaviour, in a chain: each run shares events with those before it
    Bc,
    /// Like bc, without labels
    BcUnlabelled,
    /// By type and order of begin
    Ctc,
    /// By number of instance, in one run whose event sets took turns (record --rotate)
    Instances,
}

/// See [`ompfuse_fuse::Relax`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Relax {
    /// As published; the time can grow with the square of a type's units
    Paper,
    /// By the smallest distance of any two execution units
    Nn,
    /// Half as many divisions; the fastest
    Halve,
}

impl Strategy {
    /// `None`: the inputs' events decide.
    pub(crate) fn with(self, relax: Relax, seed: u64) -> Option<ompfuse_fuse::Strategy> {
        let relax = match relax {
            Relax::Paper => ompfuse_fuse::Relax::Paper,
            Relax::Nn => ompfuse_fuse::Relax::Nn,
            Relax::Halve => ompfuse_fuse::Relax::Halve,
        };
        Some(match self {
            Strategy::Default => return None,
            Strategy::Lgl | Strategy::Instances => ompfuse_fuse::Strategy::Lgl,
            Strategy::Joint => ompfuse_fuse::Strategy::Joint,
            Strategy::Ctc => ompfuse_fuse::Strategy::Ctc,
            Strategy::Bc => ompfuse_fuse::Strategy::Bc(relax),
            Strategy::BcUnlabelled => ompfuse_fuse::Strategy::BcUnlabelled { relax, seed },
        })
    }

    /// With the other options' defaults.
    pub(crate) fn plain(self) -> Option<ompfuse_fuse::Strategy> {
        self.with(RELAX, SEED)
    }
}
