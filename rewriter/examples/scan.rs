//! Prints the sites of binaries as JSON lines, for debugging: `cargo run -p ompfuse-rewriter --example scan -- FILE...`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut failed = false;
    for path in std::env::args().skip(1) {
        let scan = std::fs::read(&path)
            .map_err(|e| format!("cannot read {path}: {e}"))
            .and_then(|bytes| ompfuse_rewriter::scan(&bytes, &path).map_err(|e| e.to_string()));
        match scan {
            Ok(scan) => {
                println!(
                    "{}",
                    serde_json::to_string(&scan.binary).unwrap_or_default()
                );
                for site in &scan.sites {
                    println!("{}", serde_json::to_string(&site.info).unwrap_or_default());
                    println!("    {:?}", site.action);
                }
                for window in &scan.windows {
                    println!("{window:?}");
                }
                println!(
                    "{}",
                    serde_json::to_string(&scan.totals()).unwrap_or_default()
                );
            }
            Err(message) => {
                eprintln!("{message}");
                failed = true;
            }
        }
    }
    ExitCode::from(u8::from(failed))
}
