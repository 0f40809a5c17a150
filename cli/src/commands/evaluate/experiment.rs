//! `ompfuse evaluate --mask`: complete runs pose as incomplete ones.

use crate::{atomic, output, progress};
use anyhow::{Context, Result};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ompfuse_fuse::{References, XuTable};
use ompfuse_report::view::pictures;
use ompfuse_report::view::table::Column;
use ompfuse_study::{self as study, Estimate, Experiment, Method, Setting};

/// The options.
#[derive(Debug, clap::Args)]
pub(crate) struct MaskArgs {
    /// Let each complete run show only N events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..))]
    mask: Option<u8>,
    /// With --mask: keep this many complete runs to compare with
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..))]
    keep: u32,
    /// With --mask: repeat this often, each time with another choice of runs
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// With --mask: how long a group of events has the counters in hardware multiplexing (hem), in
    /// microseconds
    #[arg(long, value_name = "US", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    period: u64,
    /// With --mask: use only these methods
    #[arg(long, value_delimiter = ',', value_parser = method_parser())]
    methods: Vec<Method>,
}

/// A method by its name in tables.
fn method_parser() -> impl TypedValueParser<Value = Method> {
    PossibleValuesParser::new(Method::ALL.map(Method::name)).map(|name| {
        let mut all = Method::ALL.into_iter();
        all.find(|m| m.name() == name)
            .expect("the parser takes these names only")
    })
}

pub(super) fn run(args: &MaskArgs, runs: &[&XuTable], all: &super::Args) -> Result<()> {
    let methods = match args.methods.is_empty() {
        true => Method::ALL.to_vec(),
        false => args.methods.clone(),
    };
    let setting = Setting {
        slots: args.mask.map_or(0, usize::from),
        period_ns: args.period.saturating_mul(1000),
        references: args.keep as usize,
        repetitions: args.repeat as usize,
        methods,
    };
    let result = {
        let bar = progress::whole("evaluating");
        study::experiment(runs, &setting, bar.progress())
            .context("cannot compare the strategies")?
    };
    if let Some(path) = &all.html {
        let page = pictures(&result, runs, all.top).context("cannot draw the distributions")?;
        atomic::write(path, page.as_bytes(), 0o644)?;
    }
    if all.format.is_json() {
        return output::print_json(&result);
    }
    output::print(&text(&result, &setting))
}

/// The pairs of events that differ most, for each method.
fn pictures(result: &Experiment, runs: &[&XuTable], top: usize) -> Result<String> {
    let kept: Vec<&XuTable> = result.kept.iter().map(|&run| runs[run]).collect();
    let mut all = vec![];
    for method in &result.methods {
        if let Some(table) = &method.example {
            let references = References::new(&kept, table)?;
            let (evaluation, _) = references.evaluate(table)?;
            let name = method.method.name();
            all.extend(super::pictures(name, &evaluation, &references, table, top)?);
        }
    }
    Ok(pictures::page("Methods against complete runs", &all))
}

fn number(estimate: Option<Estimate>) -> String {
    match estimate {
        None => "-".to_owned(),
        Some(Estimate {
            mean,
            margin: Some(margin),
            ..
        }) => format!("{mean:.3} +-{margin:.3}"),
        Some(Estimate { mean, .. }) => format!("{mean:.3}"),
    }
}

fn text(result: &Experiment, setting: &Setting) -> String {
    let mut out = format!(
        "{} complete runs of {} execution units, {} events, {} at a time; {} repetitions, {} runs kept\n",
        result.runs,
        result.xus,
        result.events,
        setting.slots,
        setting.repetitions,
        setting.references
    );
    if let Some(fresh) = result.fresh {
        out += &format!(
            "EPD of fresh complete runs: {:.3} to {:.3}\n",
            fresh.min, fresh.max
        );
    }
    if result.reused {
        out += "There are fewer runs than event sets: some runs show several\n";
    }
    let columns = [
        Column::left("method"),
        Column::left("runs"),
        Column::left("EPD"),
        Column::left("Correlation Error"),
        Column::left("hidden error").leaves(1),
        Column::left("by event").leaves(3),
        Column::left("all events").leaves(2),
        Column::left("XUs").leaves(4),
    ];
    let mut rows = Vec::new();
    for method in &result.methods {
        rows.push(vec![
            method.method.name().to_owned(),
            method.runs.to_string(),
            number(method.epd),
            number(method.correlation_error),
            number(method.hidden_error),
            number(method.hidden_error_by_event),
            number(method.error_by_event),
            method
                .matched
                .map_or("none".to_owned(), |m| format!("{:.1} %", 100.0 * m.mean)),
        ]);
    }
    out + "\n" + &output::table(&columns, rows)
}
