//! A curve as a picture: points, levels, and lines where the level changed. Texts are beside the picture, so that they keep their
//! size on any screen.

use crate::words;
use crate::words::history as said;
use maud::{Markup, html};
use ompfuse_compare::history::{ChangePoint, Curve, Series};
use std::fmt::Write as _;

/// Room above the largest and below the least value, as a part of the picture.
const ROOM: f64 = 0.12;

/// Least height of the picture, as a share of the values: noise of a thousandth is no mountain.
const LEAST: f64 = 0.02;

/// Changes that have their words at the line: the newest.
const MARKS: usize = 4;

/// Wide, with the names of the commits that changed it.
pub(super) fn large(series: &Series, curve: &Curve) -> Markup {
    drawn(series, curve, "curve large")
}

/// One of many.
pub(super) fn small(series: &Series, curve: &Curve) -> Markup {
    drawn(series, curve, "curve")
}

/// From values to places in a picture of 100 by 100.
struct Scale {
    commits: usize,
    low: f64,
    high: f64,
}

impl Scale {
    fn of(curve: &Curve) -> Scale {
        let known = curve.values.iter().flatten().copied();
        let (low, high) = known.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
            (l.min(v), h.max(v))
        });
        let wide = (high - low).max(LEAST * high.abs()).max(f64::MIN_POSITIVE);
        let middle = f64::midpoint(low, high);
        let half = wide * (0.5 + ROOM);
        Scale {
            commits: curve.values.len(),
            low: middle - half,
            high: middle + half,
        }
    }

    fn x(&self, at: f64) -> f64 {
        100.0 * (at + 0.5) / self.commits.max(1) as f64
    }

    fn y(&self, value: f64) -> f64 {
        100.0 * (self.high - value) / (self.high - self.low)
    }
}

fn drawn(series: &Series, curve: &Curve, class: &str) -> Markup {
    let scale = Scale::of(curve);
    let known: Vec<(usize, f64)> = curve
        .values
        .iter()
        .enumerate()
        .filter_map(|(at, v)| Some((at, (*v)?)))
        .collect();
    let value = |v: f64| words::value(&curve.quantity, v);
    let largest = known
        .iter()
        .map(|(_, v)| *v)
        .fold(f64::NEG_INFINITY, f64::max);
    let least = known.iter().map(|(_, v)| *v).fold(f64::INFINITY, f64::min);
    let (first, last) = (series.commits.first(), series.commits.last());
    let told = format!(
        "{}: {}",
        said::curve_name(curve),
        said::curve_verdict(series, curve)
    );
    html! {
        div class=(class) {
            div class=(if curve.changes.len() > 1 { "plot twice" } else { "plot" }) {
                svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label=(told) {
                    @for change in &curve.changes {
                        @let x = scale.x(f64::from(change.at) - 0.5);
                        @let [from, to] = [change.earliest, change.latest].map(|at| scale.x(f64::from(at) - 0.5));
                        @if to > from { rect.range x=(two(from)) width=(two(to - from)) y="0" height="100" {} }
                        path.since class=[worse(change.is_worse)] d=(format!("M{} 0V100", two(x))) {}
                    }
                    path.line d=(line(&scale, &known)) {}
                    @for (from, to, level) in levels(curve) {
                        path.level d=(format!("M{} {}H{}", two(scale.x(from as f64 - 0.5)), two(scale.y(level)), two(scale.x(to as f64 - 0.5)))) {}
                    }
                    @for (at, v) in &known {
                        path class=(if curve.lone.contains(&(*at as u32)) { "dot lone" } else { "dot" }) d=(format!("M{} {}h0", two(scale.x(*at as f64)), two(scale.y(*v)))) {
                            title { (series.commits.get(*at).map_or_else(String::new, said::commit_of_day)) ": " (value(*v)) }
                        }
                    }
                }
                @for (n, change) in curve.changes.iter().rev().take(MARKS).enumerate() {
                    (mark(&scale, series, curve, change, n % 2))
                }
            }
            div.ends {
                span { (first.map_or_else(String::new, said::commit)) }
                span { @if least < largest { (value(least)) " to " (value(largest)) } @else { (value(largest)) } }
                span { (last.map_or_else(String::new, said::commit)) }
            }
        }
    }
}

/// What stands at the line of a change. `row`: neighbours stand one above the other.
fn mark(scale: &Scale, series: &Series, curve: &Curve, change: &ChangePoint, row: usize) -> Markup {
    let x = scale.x(f64::from(change.at) - 0.5);
    let (class, place) = match x > 60.0 {
        true => ("mark left", format!("right:{:.2}%", 100.0 - x)),
        false => ("mark", format!("left:{x:.2}%")),
    };
    let at = series.commits.get(change.at as usize);
    html! {
        span class=(class) style=(format!("{place};top:{:.2}rem", 1.1 * row as f64)) {
            span class=[worse(change.is_worse)] { (said::change_size(curve, change)) }
            " " (at.map_or_else(String::new, said::commit))
        }
    }
}

fn worse(is_worse: Option<bool>) -> Option<&'static str> {
    is_worse.map(|w| if w { "worse" } else { "better" })
}

fn two(value: f64) -> String {
    format!("{value:.2}")
}

/// Through all points.
fn line(scale: &Scale, known: &[(usize, f64)]) -> String {
    let mut path = String::new();
    for (n, (at, value)) in known.iter().enumerate() {
        let begin = if n == 0 { 'M' } else { 'L' };
        let _ = write!(
            path,
            "{begin}{:.2} {:.2}",
            scale.x(*at as f64),
            scale.y(*value)
        );
    }
    path
}

/// The levels: from, to (the first commit that has another), value.
fn levels(curve: &Curve) -> Vec<(usize, usize, f64)> {
    let ends = curve
        .changes
        .iter()
        .map(|c| c.at as usize)
        .chain([curve.values.len()]);
    let mut levels = vec![];
    let mut from = 0;
    for to in ends {
        let is_kept = |at: &usize| !curve.lone.contains(&(*at as u32));
        let kept: Vec<f64> = (from..to)
            .filter(is_kept)
            .filter_map(|at| curve.values[at])
            .collect();
        if !kept.is_empty() {
            levels.push((from, to, kept.iter().sum::<f64>() / kept.len() as f64));
        }
        from = to;
    }
    levels
}
