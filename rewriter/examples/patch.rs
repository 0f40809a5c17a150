//! Scans, patches and verifies, and tells what each step took, for debugging: `cargo run --release -p ompfuse-rewriter
//! --example patch -- IN OUT [--dormant] [--scarce]` (`--scarce`: as if every inline probe had room for a short jump only).

use ompfuse_rewriter::patch::accept;
use ompfuse_rewriter::patch_error::PatchError;
use ompfuse_rewriter::plan::{PlanOptions, plan};
use ompfuse_rewriter::scan::{scan_scarce, scan_timed};
use ompfuse_rewriter::write::write_to;
use std::os::unix::fs::PermissionsExt;
use std::process::ExitCode;
use std::time::Instant;

fn run() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, rest @ ..] = args.as_slice() else {
        return Err("usage: patch IN OUT [--dormant] [--scarce]".into());
    };
    let has = |option: &str| rest.iter().any(|arg| arg == option);
    let options = PlanOptions {
        dormant: has("--dormant"),
        ..PlanOptions::default()
    };
    let bytes = std::fs::read(input).map_err(|e| format!("cannot read {input}: {e}"))?;
    let mut times = Vec::new();
    let mut begin = Instant::now();
    let mut lap = |what| {
        times.push(format!(
            "{what} {:.0} ms",
            begin.elapsed().as_secs_f64() * 1e3
        ));
        begin = Instant::now();
    };
    let scanned = match has("--scarce") {
        true => scan_scarce(&bytes, input).map(|scan| (scan, Vec::new())),
        false => scan_timed(&bytes, input),
    };
    let (scan, parts) = scanned.map_err(|e| e.to_string())?;
    lap("scan");
    let plan = plan(&bytes, scan, &options).map_err(|e| e.to_string())?;
    lap("plan");
    let mut new = Vec::with_capacity(plan.len as usize);
    let written = write_to(&bytes, &plan, |part| -> Result<(), PatchError> {
        new.extend_from_slice(part);
        Ok(())
    });
    written.map_err(|e| e.to_string())?;
    lap("write");
    let report = accept(&bytes, &new, &plan, &|_| ()).map_err(|e| e.to_string())?;
    lap("verify");
    println!("{:?} {report:?}\n{}", plan.tactic, times.join(", "));
    let parts = parts
        .iter()
        .map(|(part, taken)| format!("{part} {:.0} ms", taken.as_secs_f64() * 1e3));
    println!(
        "of the scan, all threads together: {}",
        parts.collect::<Vec<_>>().join(", ")
    );
    let written = std::fs::write(output, &new)
        .and_then(|()| std::fs::set_permissions(output, std::fs::Permissions::from_mode(0o755)));
    written.map_err(|e| format!("cannot write {output}: {e}"))
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
