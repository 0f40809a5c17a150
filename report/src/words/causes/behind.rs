//! What samples tell of the work behind a loss, and the loss that is all work: code outside of parallel regions.

use super::places::place;
use super::{percent, times};
use crate::words::uneven::reason;
use ompfuse_account::model::{Behind, Cause, MostIn, Report, SampledFunction};
use ompfuse_account::units::seconds;
use ompfuse_fuse::samples::Reason;

/// A serial part with a smaller share of the work limits nobody yet.
const NEAR: f64 = 0.05;

/// From this share on, the functions of a serial part are mostly those that import modules.
const IMPORTING: f64 = 0.25;

/// Whether most of a serial part imports modules.
pub(super) fn is_importing(behind: Option<&Behind>) -> bool {
    behind.is_some_and(|b| 2 * b.importing.unwrap_or(0) > b.samples)
}

/// Where most of the work is.
pub(super) fn mostly(behind: Option<&Behind>) -> Option<String> {
    let Behind {
        samples,
        most_in,
        functions,
        importing,
        uneven: _,
    } = behind?;
    let share = |n: u64| n as f64 / (*samples).max(1) as f64;
    let importing = importing.map(share).filter(|share| *share >= IMPORTING);
    if let Some(share) = importing {
        return Some(format!(
            "at least {} of its samples import Python modules",
            percent(share)
        ));
    }
    if let Some(most) = most_in {
        return Some(format!("most of it in {}", most_of(most)));
    }
    let named = |f: &SampledFunction| {
        let share = percent(share(f.samples));
        format!("{share} of it in {}", f.function.as_deref().unwrap_or("?"))
    };
    let named: Vec<String> = functions.iter().map(named).collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// What makes slow units slow. That they have more iterations is told by the cause itself.
pub(super) fn slow(cause: &Cause, behind: Option<&Behind>) -> Option<String> {
    let uneven = behind?.uneven.as_ref()?;
    let noun = match cause {
        Cause::UnevenTasks { .. } => "tasks",
        Cause::UnevenUnits { is_sections, .. } | Cause::FewUnits { is_sections, .. }
            if *is_sections =>
        {
            "sections"
        }
        _ => "ranges",
    };
    match uneven.reason {
        Reason::Alike | Reason::Iterations => None,
        _ => reason(uneven, noun),
    }
}

/// A line, or a function.
fn most_of(most: &MostIn) -> String {
    let base = |path: &String| path.rsplit('/').next().unwrap_or(path).to_owned();
    let line = most.file.as_ref().zip(most.line);
    let line = line.map(|(file, line)| format!("{}:{line}", base(file)));
    let object = most.object.as_ref().map(base);
    match (&most.function, line, object) {
        (Some(function), Some(line), _) => format!("{function}, {line}"),
        (Some(function), None, Some(object)) => format!("{function} ({object})"),
        (Some(function), None, None) => function.clone(),
        (None, line, object) => line.or(object).unwrap_or_default(),
    }
}

/// Of the code outside of parallel regions.
pub(super) fn serial_part(report: &Report, cause: &Cause, behind: Option<&Behind>) -> String {
    let Cause::SerialPart {
        wall_s: Some(wall_s),
        of_work,
        function,
    } = cause
    else {
        let mostly = mostly(behind).map(|mostly| format!("; {mostly}"));
        return "too few threads work outside of parallel regions".to_owned()
            + &mostly.unwrap_or_default();
    };
    let mostly = match function {
        Some((id, s)) => Some(format!("{} of it in {}", seconds(*s), place(report, *id))),
        None => mostly(behind),
    };
    let mostly = mostly.map_or_else(String::new, |mostly| format!(", {mostly}"));
    // A limit far away says nothing.
    let limit = of_work.filter(|share| *share >= NEAR).map(|share| {
        format!(
            ": at most {} times as fast as one thread, with any number of threads",
            times(1.0 / share)
        )
    });
    format!(
        "one thread works outside of parallel regions, for {}{mostly}{}",
        seconds(*wall_s),
        limit.unwrap_or_default()
    )
}
