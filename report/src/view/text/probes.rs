//! What probes took, if that is much.

use super::{Paint, TextOptions};
use crate::view::table::wrap;
use crate::words;
use ompfuse_account::from_summary::probes::WORTH_SAYING;
use ompfuse_account::model::Report;

/// What the probes took of the run, and how to record with fewer of them.
pub(super) fn probes(report: &Report, options: TextOptions) -> Option<String> {
    let probes = report.probes.as_ref()?;
    let most = probes.most_at.as_ref()?;
    if probes.share <= WORTH_SAYING {
        return None;
    }
    let remedy = probes.remedy.as_ref();
    let parts = report.regions.iter().flat_map(|r| &r.in_part);
    let is_throttled = parts.into_iter().any(|part| part.throttled);
    let told = words::took(probes, most, remedy.is_some(), is_throttled);
    let paint = Paint { on: options.colour };
    let told = paint.warn(wrap(&told, options.width, "").trim_end());
    // The command is one line, whatever its length: it is to be copied.
    let command = remedy.map(|r| format!("  {}\n", words::command(report, r)));
    Some(format!("{told}\n{}", command.unwrap_or_default()))
}
