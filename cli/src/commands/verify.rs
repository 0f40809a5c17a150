//! `ompfuse verify`.

use crate::binary::{self, Totals};
use crate::debug::DebugArgs;
use crate::{input, memory, output, progress};
use anyhow::{Result, bail};
use ompfuse_format::coverage::Coverage;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Check that a patched file differs from its original only where it was patched
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The original
    original: PathBuf,
    /// The copy that `ompfuse patch` wrote
    patched: PathBuf,
    #[command(flatten)]
    debug: DebugArgs,
    #[command(flatten)]
    output: output::FormatArg,
}

#[derive(Serialize)]
struct Answer<'a> {
    original: &'a Path,
    patched: &'a Path,
    verified: bool,
    /// Made again, it is the same byte for byte.
    reproduced: bool,
    totals: Totals,
}

pub(super) fn run(args: &Args) -> Result<()> {
    memory::give_back();
    let (old, new) = (input::map(&args.original)?, input::map(&args.patched)?);
    let bar = progress::whole("verifying");
    let Some(description) = binary::description(&args.patched, &new)? else {
        bail!(
            "{} is not patched; give the original first, then what `ompfuse patch` made of it",
            args.patched.display()
        );
    };
    let reproduced = binary::verify(
        (&args.original, &old),
        (&args.patched, &new),
        &description,
        &args.debug,
        bar.progress(),
    )?;
    drop(bar);
    let totals = Totals::count(&description.sites);
    let answer = Answer {
        original: &args.original,
        patched: &args.patched,
        verified: true,
        reproduced,
        totals,
    };
    if args.output.is_json() {
        return output::print_json(&answer);
    }
    let coverage = Coverage::of(&description.sites);
    output::print(&format!(
        "{} is {} with {} of {} constructs patched; everything else is unchanged{}",
        args.patched.display(),
        args.original.display(),
        coverage.with_probe,
        coverage.constructs(),
        if reproduced {
            "; patched again, the original gives the same bytes"
        } else {
            "; another version of ompfuse made it, so that what its probes read can't be compared"
        }
    ))
}
