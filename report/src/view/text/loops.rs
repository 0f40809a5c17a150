//! Natural loops: how often they are executed, and how many iterations they have.

use super::{Paint, TextOptions, laid_out, titled};
use crate::view::table::Column;
use crate::words::location;
use ompfuse_account::model::{Region, Report};
use ompfuse_account::units::{self, count, seconds};
use ompfuse_format::Construct;
use ompfuse_fuse::names::readable;

/// The loops that were chosen by name, those with the most time first; nothing if there are none.
pub(super) fn loops(report: &Report, options: TextOptions) -> Option<String> {
    let is_loop = |r: &&Region| r.construct == Some(Construct::NaturalLoop);
    let mut rows: Vec<Vec<String>> = report.regions.iter().filter(is_loop).map(row).collect();
    if rows.is_empty() {
        return None;
    }
    let more = rows.len().saturating_sub(options.top);
    rows.truncate(options.top);
    let columns = [
        Column::right("#"),
        Column::left("location").keeps_place(18),
        Column::left("function").keeps_place(12).leaves(2),
        Column::right("own"),
        Column::right("entries"),
        Column::right("iterations"),
        Column::right("mean"),
        Column::right("max"),
        Column::right("own/it.").leaves(1),
    ];
    let explanation =
        "of the machine code: vectorised and unrolled ones have fewer iterations than the source";
    let mut text = titled("Loops", explanation, options) + &laid_out(&columns, rows, options);
    if more > 0 {
        let paint = Paint { on: options.colour };
        text += &(paint.dim(&format!("{more} more")) + "\n");
    }
    Some(text)
}

fn row(region: &Region) -> Vec<String> {
    let iterations = region.iterations.unwrap_or(0);
    let function = region.function.as_deref().map(readable);
    let each = |of: f64| match iterations {
        0 => String::new(),
        n => seconds(of / n as f64),
    };
    vec![
        region.id.to_string(),
        location(region),
        function.unwrap_or_default().into_owned(),
        seconds(region.time_s),
        count(region.executions),
        count(iterations),
        region
            .mean_iterations()
            .map(units::mean)
            .unwrap_or_default(),
        region.iterations_max.map(count).unwrap_or_default(),
        each(region.time_s),
    ]
}
