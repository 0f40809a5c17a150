//! What probes took, if that is much.

use super::{Paint, TextOptions};
use crate::model::Report;
use crate::probes::WORTH_SAYING;
use crate::table::wrap;
use crate::units::{percent, seconds};

/// What the probes took of the run, and how to record with fewer of them.
pub(super) fn probes(report: &Report, options: TextOptions) -> Option<String> {
    let probes = report.probes.as_ref()?;
    let (most, command) = (probes.most.as_ref()?, probes.command.as_ref()?);
    if probes.share <= WORTH_SAYING {
        return None;
    }
    let told = format!(
        "the probes took about {} of the processor time ({}, estimated), most of it at: {most}. The times below hold it. \
         To record with fewer probes:",
        percent(probes.share),
        seconds(probes.estimated_s),
    );
    let paint = Paint { on: options.colour };
    let told = paint.warn(wrap(&told, options.width, "").trim_end());
    // The command is one line, whatever its length: it is to be copied.
    Some(format!("{told}\n  {command}\n"))
}
