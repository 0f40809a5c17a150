//! Scan and patch of a file in linear decodes: what both take is compared with what iced-x86 takes to decode all code once. Everything
//! runs on one thread of one process, in turn, and the thread's processor time is measured: so neither other programs nor the number
//! of processors change the ratios much.

use iced_x86::{Decoder, DecoderOptions, Instruction};
use object::{Object, ObjectSection};
use ompfuse_rewriter::patch::accept;
use ompfuse_rewriter::patch_error::PatchError;
use ompfuse_rewriter::plan::{PlanOptions, plan};
use ompfuse_rewriter::scan::scan;
use ompfuse_rewriter::write::write_to;
use std::time::Instant;

/// Medians.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ratios {
    /// What a linear decode takes, in milliseconds of a processor.
    pub(crate) decode: f64,
    /// What a scan takes, in linear decodes.
    pub(crate) scan: f64,
    /// What scan, plan, write and verify take together, in linear decodes.
    pub(crate) patch: f64,
}

/// Measures a file so many times.
pub(crate) fn measure(bytes: &[u8], name: &str, rounds: usize) -> Ratios {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let pool = pool.expect("a thread can be started");
    pool.install(|| {
        let (mut decodes, mut scans, mut patches) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let decode = taken(|| linear(bytes));
            let scanned = taken(|| drop(scan(bytes, name).expect("the file can be scanned")));
            let patched = taken(|| patch(bytes, name));
            decodes.push(decode);
            scans.push(scanned / decode);
            patches.push(patched / decode);
        }
        Ratios {
            decode: median(decodes),
            scan: median(scans),
            patch: median(patches),
        }
    })
}

/// Scan, plan, write into memory, and verify.
fn patch(bytes: &[u8], name: &str) {
    let scan = scan(bytes, name).expect("the file can be scanned");
    let plan = plan(bytes, scan, &PlanOptions::default()).expect("the file can be patched");
    let mut new = Vec::with_capacity(plan.len as usize);
    let written = write_to(bytes, &plan, |part| -> Result<(), PatchError> {
        new.extend_from_slice(part);
        Ok(())
    });
    written.expect("the plan is the file's");
    accept(bytes, &new, &plan, &|_| ()).expect("the patched file is right");
}

/// Milliseconds that something takes: small files are done several times.
fn taken(mut what: impl FnMut()) -> f64 {
    const LEAST: f64 = 50.0;
    let (begin, before) = (Instant::now(), on_processor());
    let mut times = 0.0;
    loop {
        what();
        times += 1.0;
        let all = on_processor() - before;
        if all >= LEAST || begin.elapsed().as_secs() > 60 {
            return all / times;
        }
    }
}

/// Milliseconds that this thread has been on a processor.
pub(crate) fn on_processor() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|n| n.parse::<f64>().ok());
    first.map_or(f64::NAN, |nanoseconds| nanoseconds / 1e6)
}

/// Decodes the code, instruction by instruction.
pub(crate) fn linear(bytes: &[u8]) {
    let file = object::File::parse(bytes).expect("an ELF file");
    let text = file.section_by_name(".text").expect("a file with code");
    let code = text.data().expect("code in the file");
    let mut decoder = Decoder::with_ip(64, code, text.address(), DecoderOptions::NONE);
    let mut insn = Instruction::default();
    let mut end = 0;
    while decoder.can_decode() {
        decoder.decode_out(&mut insn);
        end = std::hint::black_box(insn.next_ip());
    }
    assert!(end >= text.address());
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
