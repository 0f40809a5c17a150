//! The report as one HTML page that needs no other file and no network.
//!
//! What is read first is in the page as text; what is opened on demand is made by its scripts, from data inside. All text
//! from outside (names, paths, arguments) goes through `maud` or [`data`], which escape it.

mod data;
mod detail;
pub mod diff;
mod events;
mod frame;
mod growth;
pub mod history;
mod keys;
mod loops;
mod missing;
mod overview;
mod paths;
mod redact;
mod regions;
pub(in crate::view) mod rows;
pub mod sampled;
pub mod series;
mod shares;
pub(in crate::view) mod source;
pub(in crate::view) mod terms;
pub mod timeline;
mod transfers;

pub use keys::Keys;
pub use maud::Markup;
pub use redact::{redacted, without_folders};
pub use source::{SourceFile, Sources};

use crate::units::Units;
use crate::view::lines;
use crate::words::{kind, location};
use ompfuse_account::model::growth::GrowthReport;
use ompfuse_account::model::{Region, Report};
use rows::Row;
use serde_json::json;
use std::collections::BTreeMap;

/// The first instructions at sites, by module and name of the site; each line an address and an instruction.
pub type Code = BTreeMap<(String, String), Vec<String>>;

/// What a page shows.
#[derive(Debug, Clone)]
pub struct Page<'a> {
    /// The report, of sites.
    pub report: &'a Report,
    /// When the program ran, for people; `None`: not known.
    pub date: Option<String>,
    /// Its execution units, as far as they are at hand.
    pub units: Option<&'a Units>,
    /// How the run goes on over time.
    pub growth: Option<&'a GrowthReport>,
    /// Source files that may be shown, by the path that regions have.
    pub sources: Sources,
    /// Instructions at sites.
    pub code: Code,
    /// The section of the timeline ([`timeline`]); `None`: single records aren't at hand.
    pub timeline: Option<Markup>,
}

/// What the sections of a page are made of.
struct Context<'a> {
    page: &'a Page<'a>,
    /// The report by source line.
    merged: &'a Report,
    rows: Vec<Row<'a>>,
    keys: Keys,
}

/// The page.
pub fn render(page: &Page<'_>) -> String {
    let merged = lines::merged(page.report);
    let context = Context {
        page,
        merged: &merged.report,
        rows: rows::rows(page.report, &merged, page.units),
        keys: Keys::new(page.report),
    };
    let sections = [
        ("overview", "Overview", Some(overview::section(&context))),
        ("ranks", "Ranks", events::ranks(&context)),
        ("regions", "Regions", regions::section(&context)),
        ("timeline", "Timeline", page.timeline.clone()),
        ("phases", "Phases", page.growth.map(growth::section)),
        ("paths", "Call paths", paths::section(&context)),
        ("loops", "Loops", loops::section(&context)),
        ("created", "Tasks", paths::units(&context)),
        ("events", "Events", events::section(&context)),
        ("missing", "Not measured", missing::section(&context)),
        ("terms", "Terms", Some(terms::section())),
    ];
    let data = json!({
        "regions": detail::all(&context),
        "growth": page.growth.map(growth::values),
        "paths": paths::values(&context),
        "events": page.units.map(|u| &u.events),
        "event_runs": page.units.map(|u| event_runs(page.report, &u.events)),
    });
    let name = crate::words::recorded_program(page.report)
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let title = format!("{name} – ompfuse");
    frame::page(&title, &sections, &data::json("data", &data))
}

/// What a region is called: construct and place.
fn title(region: &Region) -> String {
    format!("{} {}", kind(region), location(region))
}

/// The run that each event's counts come from, where there are several.
fn event_runs(report: &Report, events: &[String]) -> Vec<Option<u16>> {
    let of = |name: &String| {
        let known = report.events.iter().find(|e| e.name == *name)?;
        known.run.filter(|_| report.runs.len() > 1)
    };
    events.iter().map(of).collect()
}
