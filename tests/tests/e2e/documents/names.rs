//! Names in comments and on pages exist: a name that is gone misleads who looks for it.

use super::pages;
use ompfuse_tests::repository;
use std::collections::{BTreeMap, BTreeSet};

/// Names of others' interfaces that no code of ours has.
const FOREIGN: &str = "__pyx_pf_7cluster_5lloyd_6iterate rNNN DW_CFA_nop DW_OP_breg6 DebugAnnotationName EventCategory EventName GOMP_TASK_FLAG_GRAINSIZE InternedString \
    KMP_TASKLOOP_MIN_TASKS LIMITED_PARALLELISM MAIN__ MULTI__NAME OTF2_FLUSH OTF2_FlushCallbacks OTF2_SUCCESS O_TMPFILE \
    PERF_SAMPLE_REGS_ABI_64 RSEQ_SIG SEQ_INCREMENTAL_STATE_CLEARED SEQ_NEEDS_INCREMENTAL_STATE _Py_DebugOffsets _QMmodulePprocedure \
    _ZN5crate6module4nameE __module_MOD_procedure arg_size cap_user_rdpmc co_lines codeptr_ra cpu_id gomp_iter_guided_next \
    gomp_task_handle_depend kmp_depend_info kmp_sch_guided_analytical_chunked kmp_sch_guided_iterative_chunked kmp_tasking main_loop \
    mpi_rget_accumulate omp_all_memory rseq_cs rt_sigprocmask sched_type solve_lu tau_exec trace_processor";

#[test]
fn names_in_comments_and_pages_exist() {
    let (mut code, mut mentions) = (BTreeSet::new(), BTreeMap::<String, Vec<String>>::new());
    let kinds = [
        "rs", "md", "toml", "c", "cc", "cpp", "h", "py", "sh", "S", "s", "f90", "js", "css", "yml",
    ];
    for file in pages::files_below(repository(), &kinds) {
        let Ok(text) = std::fs::read_to_string(&file) else {
            continue; // some fixtures are no text
        };
        let name = pages::relative(&file);
        let is_about_others = name.starts_with("docs/measurements/") || name == "CHANGELOG.md";
        let mut is_block = false;
        for line in text.lines() {
            let (own, told) = match (name.ends_with(".md"), name.ends_with(".rs")) {
                (true, _) => {
                    is_block ^= line.trim_start().starts_with("```");
                    ("", if is_block { "" } else { line })
                }
                (_, true) => divided(line),
                _ => (line, ""),
            };
            code.extend(words(own).map(str::to_owned));
            if is_about_others {
                continue;
            }
            for mention in told.split('`').skip(1).step_by(2).filter(|m| is_name(m)) {
                for word in words(mention).filter(|w| is_telling(w)) {
                    mentions
                        .entry(word.to_owned())
                        .or_default()
                        .push(name.clone());
                }
            }
        }
    }
    code.extend(FOREIGN.split_whitespace().map(str::to_owned));
    let known = |word: &str| {
        // Variants are written otherwise in JSON, and metrics have a prefix.
        let is_there = |word: &str| code.contains(word) || code.contains(&in_camels(word));
        let bare = word.strip_prefix("ompfuse_").unwrap_or(word);
        is_there(word) || is_there(bare) || is_there(bare.strip_suffix("_seconds").unwrap_or(bare))
    };
    assert!(mentions.len() > 500, "{} names were found", mentions.len());
    mentions.retain(|word, _| !known(word));
    let told: Vec<String> = (mentions.iter())
        .map(|(word, at)| format!("{word} in {}", at[0]))
        .collect();
    assert!(
        told.is_empty(),
        "nothing has these names:\n{}",
        told.join("\n")
    );
}

/// A line of Rust, and its comment.
fn divided(line: &str) -> (&str, &str) {
    match line.trim_start().starts_with("//") {
        true => ("", line),
        false => line.split_once(" // ").unwrap_or((line, "")),
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|w| !w.is_empty())
}

/// Whether it is a path of names, maybe with brackets of links or calls.
fn is_name(mention: &str) -> bool {
    let bare = mention.trim_matches(['[', ']']).trim_end_matches("()");
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    !bare.is_empty()
        && bare.chars().all(is_of_name)
        && !bare.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether a word is no word of English.
fn is_telling(word: &str) -> bool {
    let camels = word
        .as_bytes()
        .windows(2)
        .any(|w| w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase());
    camels || word.contains('_')
}

fn in_camels(word: &str) -> String {
    let parts = word.split('_').map(|part| {
        let mut chars = part.chars();
        let first = chars.next().map(|c| c.to_ascii_uppercase());
        first.into_iter().chain(chars).collect::<String>()
    });
    parts.collect()
}
