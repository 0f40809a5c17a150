//! A comparison of two sides, as a page of its own.

use super::detail::short;
use super::{data, frame};
use crate::words;
use maud::{Markup, html};
use ompfuse_account::model::key::RegionKey;
use ompfuse_account::units::percent;
use ompfuse_compare::diff::{Change, Finding, Lone, Pair};
use ompfuse_compare::gate::Outcome;
use ompfuse_compare::{Diff, Side, SideInfo};
use serde_json::{Map, Value, json};

/// Regions without a partner that are listed, of each side.
const LONE: usize = 40;
/// Pairs that are listed.
const PAIRS: usize = 400;

/// The page. `sides`: A and B, which have how units are distributed. `redact`: as [`super::redacted`] does.
pub fn render(diff: &Diff, outcomes: &[Outcome], sides: [&Side; 2], redact: bool) -> String {
    let quantiles: Vec<_> = (diff.pairs.iter()).map(|p| quantiles(p, sides)).collect();
    let redacted = redact.then(|| super::redacted(diff));
    let diff = redacted.as_ref().unwrap_or(diff);
    let keyed: Vec<(String, &Pair)> = keys(diff);
    let sections = [
        ("overview", "Overview", Some(overview(diff, outcomes))),
        ("regions", "Regions", regions(&keyed, diff)),
        ("unmatched", "Unmatched", unmatched(diff)),
    ];
    let all: Map<String, Value> = keyed
        .iter()
        .zip(&quantiles)
        .map(|((key, pair), quantiles)| (key.clone(), value(pair, quantiles)))
        .collect();
    let values = json!({ "regions": all, "sides": [diff.a.name, diff.b.name] });
    frame::page(
        "Comparison – ompfuse",
        &sections,
        &data::json("data", &values),
    )
}

/// What pairs are called in the page's address.
fn keys(diff: &Diff) -> Vec<(String, &Pair)> {
    let mut known = std::collections::HashMap::new();
    let one = |pair| {
        let plain = super::keys::plain(words::compare_kind(pair), &words::pair_place(pair));
        let times = known.entry(plain.clone()).or_insert(0);
        *times += 1;
        let key = match times {
            1 => plain,
            n => format!("{plain}~{n}"),
        };
        (key, pair)
    };
    diff.pairs.iter().take(PAIRS).map(one).collect()
}

fn overview(diff: &Diff, outcomes: &[Outcome]) -> Markup {
    let side = |name: &str, info: &SideInfo| {
        let runs = if info.runs == 1 { "run" } else { "runs" };
        html! { li { span.what { (name) } " " span.value { (info.name) } span.sub { " " (info.runs) " " (runs) ", " (info.threads) " threads, " (info.program) } } }
    };
    html! {
        h1 { "Comparison" }
        ul.facts.sides { (side("A", &diff.a)) (side("B", &diff.b)) }
        div.verdict { p.headline { (words::verdict(diff)) } }
        @if !outcomes.is_empty() {
            ul.outcomes {
                @for outcome in outcomes {
                    @let word = words::outcome_word(outcome);
                    li class=(word) { strong { (word) } " " code { (outcome.expression) } ": " (words::outcome(outcome)) }
                }
            }
        }
        h2.small { "The whole program" }
        div.scroll.whole tabindex="0" role="region" aria-label="Changes of the whole program" { (changes(&diff.total)) }
        @if !diff.conditions.is_empty() {
            div.alert role="note" { h2.small { "Mind" } ul { @for c in &diff.conditions { li { (words::condition(c)) } } } }
        }
    }
}

fn changes(changes: &[Change]) -> Markup {
    let side = |change: &Change, v: Option<f64>| {
        v.map_or_else(|| "–".to_owned(), |v| words::value(&change.quantity, v))
    };
    html! {
        table {
            thead { tr { th.name scope="col" { "Quantity" } th scope="col" { "A" } th scope="col" { "B" } th scope="col" { "Change" } th.left.w1 scope="col" { "How sure" } } }
            tbody {
                @for change in changes.iter().filter(|c| c.a.is_some() || c.b.is_some()) {
                    tr {
                        th.name scope="row" { (words::quantity(&change.quantity)) @if change.is_modelled { span.sub { " (modelled)" } } }
                        td { (side(change, change.a)) } td { (side(change, change.b)) }
                        td class=(tone(change)) { (words::changed(change)) }
                        td.left.sub.w1 { (words::certainty(change)) }
                    }
                }
            }
        }
    }
}

/// What a change is shown as: certain and worse, certain and better, or neither.
fn tone(change: &Change) -> &'static str {
    let by = change
        .change
        .filter(|by| change.finding == Finding::Changed && *by != 0.0);
    match by.zip(change.quantity.is_better_if_larger()) {
        Some((by, is_better)) if is_better == (by > 0.0) => "better",
        Some(_) => "worse",
        None => "",
    }
}

fn regions(pairs: &[(String, &Pair)], diff: &Diff) -> Option<Markup> {
    if pairs.is_empty() {
        return None;
    }
    let left = diff.pairs.len().saturating_sub(pairs.len());
    Some(html! {
        div.heading {
            h2 { "Regions" }
            p.sub {
                "Wall time of parallel regions, thread time of others. Matched: " (percent(diff.matched[0])) " of the regions' time of A, "
                (percent(diff.matched[1])) " of B."
            }
        }
        div.tools {
            label { span.what { "Filter " } input #filter type="search" placeholder="construct, file, function" autocomplete="off" spellcheck="false"; }
            span #shown.sub role="status" {}
        }
        div.table tabindex="0" role="region" aria-label="Table of matched regions" {
            table #regions-table {
                thead { tr {
                    th.name scope="col" { button type="button" data-sort="name" { "Region" } }
                    @for (id, name, shown) in [("a", "A", ""), ("b", "B", ""), ("change", "Change", ""), ("share-a", "Share of A", "w2"), ("share-b", "Share of B", "w2")] {
                        th class=(shown) scope="col" { button type="button" data-sort=(id) { (name) } }
                    }
                    th.left.w1 scope="col" { button type="button" data-sort="sure" { "How sure" } }
                } }
                @for (key, pair) in pairs { (pair_row(key, pair)) }
            }
        }
        p #none.note hidden { "No region matches." }
        @if left > 0 { p.note { (left) " more pairs with smaller changes are left out." } }
    })
}

fn pair_row(key: &str, pair: &Pair) -> Markup {
    let headline = pair.headline();
    let (place, kind) = (words::pair_place(pair), words::compare_kind(pair));
    let side = |v: Option<f64>| match (headline, v) {
        (Some(c), Some(v)) => words::value(&c.quantity, v),
        _ => "–".to_owned(),
    };
    let (a, b) = (headline.and_then(|c| c.a), headline.and_then(|c| c.b));
    let change = headline.and_then(|c| c.change);
    let sure = headline.map_or_else(String::new, words::certainty);
    let values = json!([place, a, b, change, pair.share[0], pair.share[1], sure]);
    let functions = pair
        .a
        .iter()
        .chain(&pair.b)
        .filter_map(|k| k.function.as_deref());
    let functions: Vec<&str> = functions.collect();
    html! {
        tbody.row data-key=(key) data-text=(format!("{kind} {place} {}", functions.join(" "))) data-v=(values.to_string()) {
            tr {
                th.name scope="row" {
                    a href={ "#region=" (key) } { span.kind { (kind) } " " span.place { (place) } }
                    @if let Some(function) = functions.last() { span.sub.fn { (function) } }
                }
                td { (side(a)) } td { (side(b)) }
                td class=(headline.map_or("", tone)) { (headline.map_or_else(|| "–".to_owned(), words::changed)) }
                td.w2 { (percent(pair.share[0])) } td.w2 { (percent(pair.share[1])) }
                td.left.w1.sub { (sure) }
            }
        }
    }
}

fn unmatched(diff: &Diff) -> Option<Markup> {
    if diff.only_a.is_empty() && diff.only_b.is_empty() {
        return None;
    }
    let list = |name: &str, lone: &[Lone]| {
        html! {
            @if !lone.is_empty() {
                h3 { "Only in " (name) }
                div.scroll tabindex="0" role="region" aria-label={ "Only in " (name) } {
                    table {
                        thead { tr { th.name scope="col" { "Region" } th scope="col" { "Share" } th.left.w1 scope="col" { "" } } }
                        tbody { @for one in lone.iter().take(LONE) {
                            tr {
                                th.name scope="row" { (one.key.construct.name()) " " (words::compare_place(&one.key)) }
                                td { (percent(one.share)) }
                                td.left.w1.sub { (words::lone(one)) }
                            }
                        } }
                    }
                }
                @if lone.len() > LONE { p.note { (lone.len() - LONE) " more" } }
            }
        }
    };
    Some(html! {
        h2 { "Without a partner" }
        (list("A", &diff.only_a))
        (list("B", &diff.only_b))
    })
}

/// How the units of a pair's regions are distributed, on A and on B.
fn quantiles(pair: &Pair, sides: [&Side; 2]) -> [Option<Vec<Value>>; 2] {
    let of = |keys: &[RegionKey], side: &Side| {
        let [key] = keys else { return None };
        let region = side.regions.iter().find(|r| r.key == *key)?;
        let times = region.quantiles.iter();
        let list: Vec<Value> = times.map(|&s| short(f64::from(s))).collect();
        (list.len() > 1).then_some(list)
    };
    [of(&pair.a, sides[0]), of(&pair.b, sides[1])]
}

/// A pair for the script that opens it.
fn value(pair: &Pair, quantiles: &[Option<Vec<Value>>; 2]) -> Value {
    let change = |c: &Change| {
        let side = |v: Option<f64>| v.map(|v| words::value(&c.quantity, v));
        json!([
            words::quantity(&c.quantity),
            side(c.a),
            side(c.b),
            words::changed(c),
            words::certainty(c),
            tone(c)
        ])
    };
    let known = pair
        .changes
        .iter()
        .filter(|c| c.a.is_some() || c.b.is_some());
    let place = |keys: &[RegionKey]| {
        let one = |k: &RegionKey| {
            let at: Vec<String> = k.addresses.iter().map(|a| format!("{:#x}", a.0)).collect();
            let file = k
                .file
                .as_ref()
                .zip(k.line)
                .map(|(file, line)| format!("{file}:{line}"));
            json!({ "place": words::compare_place(k), "file": file, "function": k.function, "addresses": at, "schedule": k.schedule })
        };
        keys.iter().map(one).collect::<Vec<_>>()
    };
    json!({
        "pair": true,
        "title": format!("{} {}", words::compare_kind(pair), words::pair_place(pair)),
        "basis": words::basis(pair),
        "group": pair.is_group,
        "causes": words::causes(pair),
        "changes": known.map(change).collect::<Vec<_>>(),
        "sides": [place(&pair.a), place(&pair.b)],
        "distance": pair.distance,
        "quantiles": quantiles,
        "unit": pair.unit.as_ref().map(|u| json!([u.what, short(u.time_s[0]), short(u.time_s[1]), u.labels, u.is_certain])),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ompfuse_compare::Quantity;

    #[test]
    fn more_efficiency_is_better_and_more_time_is_worse() {
        let of = |quantity: Quantity, by: f64, finding: Finding| {
            let change = Change {
                quantity,
                a: Some(1.0),
                b: Some(1.0 + by),
                change: Some(by),
                interval: None,
                p: None,
                finding,
                runs_needed: None,
                is_modelled: false,
            };
            tone(&change)
        };
        let (rises, falls) = (0.25, -0.25);
        let changed = Finding::Changed;
        assert_eq!(of(Quantity::Wall, rises, changed), "worse");
        assert_eq!(of(Quantity::Wall, falls, changed), "better");
        assert_eq!(of(Quantity::ParallelEfficiency, rises, changed), "better");
        assert_eq!(of(Quantity::LoadBalance, falls, changed), "worse");
        // More iterations are neither.
        assert_eq!(of(Quantity::Iterations, rises, changed), "");
        assert_eq!(of(Quantity::Wall, rises, Finding::Equal), "");
    }
}
