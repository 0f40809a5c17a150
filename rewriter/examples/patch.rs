//! Scans, patches and verifies, for debugging: `cargo run -p ompfuse-rewriter --example patch -- IN OUT [--dormant]`.

use ompfuse_rewriter::plan::PlanOptions;
use std::os::unix::fs::PermissionsExt;
use std::process::ExitCode;

fn run() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, rest @ ..] = args.as_slice() else {
        return Err("usage: patch IN OUT [--dormant]".into());
    };
    let options = PlanOptions {
        dormant: !rest.is_empty(),
        ..PlanOptions::default()
    };
    let bytes = std::fs::read(input).map_err(|e| format!("cannot read {input}: {e}"))?;
    let scan = ompfuse_rewriter::scan(&bytes, input).map_err(|e| e.to_string())?;
    let patched =
        ompfuse_rewriter::patch::patch(&bytes, &scan, &options).map_err(|e| e.to_string())?;
    println!("{:?} {:?}", patched.plan.tactic, patched.report);
    let written = std::fs::write(output, &patched.bytes)
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
