//! `ompfuse watch`.

use crate::newest::or_newest;
use crate::output;
use crate::watching::{self, Watching};
use anyhow::Result;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Show what a program does while it is recorded: rate, time, imbalance and events of its regions
///
/// The program is not stopped: `watch` reads its records. A unit counts when it has ended. Without a terminal, and for JSON, everything
/// since the recording began is printed once.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A run's folder, the folder of `ompfuse record -o`, or a process's number (default: the newest
    /// ompfuse-out* here)
    #[arg(value_name = "DIR|PID")]
    target: Option<PathBuf>,
    /// Look at processes that run already (`4711,4712`), by samples: each picture is of the time since the last one
    ///
    /// They are not stopped, and nothing of them is changed.
    #[arg(short, long, value_name = "PID", value_delimiter = ',', conflicts_with_all = ["target", "serve"])]
    pid: Vec<u32>,
    /// Seconds between two pictures, or between two looks of --serve
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = parse_seconds)]
    every: f64,
    /// Serve metrics for Prometheus at http://ADDRESS:PORT/metrics as long as something is recorded, as in
    /// `127.0.0.1:9464`; port 0 takes a free one
    ///
    /// The metrics are sums since the recording began. Whoever reaches the address can read them.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_address, conflicts_with = "format")]
    serve: Option<SocketAddr>,
    #[command(flatten)]
    format: output::FormatArg,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds @ 0.05..=3600.0) => Ok(seconds),
        _ => Err("a number of seconds from 0.05 to 3600 is needed".to_owned()),
    }
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    // A name can stand for several addresses, and only one is meant to be bound.
    let wrong = |_| "an IP address and a port are needed, as in 127.0.0.1:9464".to_owned();
    text.parse().map_err(wrong)
}

pub(super) fn run(args: &Args) -> Result<()> {
    let interval = Duration::from_secs_f64(args.every);
    let has_screen = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    let is_once = !has_screen;
    if !args.pid.is_empty() {
        return watching::sampled(&args.pid, interval, is_once, args.format.is_json());
    }
    let watching = Watching::when_begun(&or_newest(args.target.as_deref())?)?;
    if let Some(address) = args.serve {
        let (last, ended) = watching::serve(watching, address, interval)?;
        let printed = output::print(&last.text());
        output::note(ended);
        return printed;
    }
    if args.format.is_json() {
        return output::print_json(&watching.picture(None));
    }
    if is_once {
        return output::print(&watching.picture(None).text());
    }
    let (last, ended) = watching::show(watching, interval)?;
    let printed = output::print(&last.text());
    ended.iter().for_each(output::note);
    printed
}
