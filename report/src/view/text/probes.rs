//! What probes took, if that is much.

use super::{Paint, TextOptions};
use crate::from_summary::probes::WORTH_SAYING;
use crate::model::Report;
use crate::view::table::wrap;
use crate::words;

/// What the probes took of the run, and how to record with fewer of them.
pub(super) fn probes(report: &Report, options: TextOptions) -> Option<String> {
    let probes = report.probes.as_ref()?;
    let (most, remedy) = (probes.most_at.as_ref()?, probes.remedy.as_ref()?);
    if probes.share <= WORTH_SAYING {
        return None;
    }
    let (told, command) = (words::took(probes, most), words::command(report, remedy));
    let paint = Paint { on: options.colour };
    let told = paint.warn(wrap(&told, options.width, "").trim_end());
    // The command is one line, whatever its length: it is to be copied.
    Some(format!("{told}\n  {command}\n"))
}
