//! Where a region was called from, in a few words.

mod python;

pub use python::caller as python_caller;

use ompfuse_account::model::{ContextCall, ContextCut, Language};
use ompfuse_fuse::names::{is_beginning, unnamed};
use std::borrow::Cow;

/// Most functions that are named.
const MOST: usize = 5;
/// Those of other languages that are named behind Python's.
const MOST_BEHIND_PYTHON: usize = 3;
/// Stands for calls.
const LEFT_OUT: &str = "…";

/// A step of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step<'c> {
    file: Option<&'c str>,
    text: String,
    has_name: bool,
    is_python: bool,
}

/// The calls to a region from outside inwards: `main › solve › libopenblas.so: cblas_dgemm › exec_blas`. Of a library's own calls the
/// outermost counts, which is the function that others call, and the innermost ones. `None` if the context isn't known.
pub fn called_from(all: &[ContextCall], context: u32) -> Option<String> {
    let (chain, cut) = chain(all, context)?;
    let mut steps: Vec<Step<'_>> = vec![];
    for call in chain.iter().rev().filter(|call| !python::is_between(call)) {
        let step = Step {
            file: call.file.as_deref(),
            text: function(call),
            has_name: call.function.is_some(),
            is_python: call.language == Some(Language::Python),
        };
        // A function that calls itself stands once.
        if steps.last() != Some(&step) {
            steps.push(step);
        }
    }
    // Python's calls are outside of others.
    let (python, others) = steps.split_at(steps.iter().take_while(|s| s.is_python).count());
    let is_cut = cut == Some(ContextCut::Depth);
    let (mut shown, most) = match python.is_empty() {
        true => (vec![], MOST),
        false => (python::telling(python, is_cut), MOST_BEHIND_PYTHON),
    };
    let others = telling(others, python.is_empty());
    if python.is_empty() && is_cut || others.len() > most {
        shown.push(Cow::Borrowed(LEFT_OUT));
    }
    let mut file = match python.is_empty() {
        true => chain.last().and_then(|c| c.file.as_deref()),
        false => None,
    };
    for step in &others[others.len().saturating_sub(most)..] {
        shown.push(match step.file != file && step.has_name {
            true => {
                let of = step.file.map_or_else(|| "?".to_owned(), file_name);
                Cow::Owned(format!("{of}: {}", step.text))
            }
            false => Cow::Borrowed(&step.text),
        });
        file = step.file;
    }
    Some(shown.join(" › ").replace('\n', " "))
}

/// A context's calls from inside outwards, without what comes before `main`, and why there are no more. `None` if the context isn't known.
fn chain(all: &[ContextCall], context: u32) -> Option<(Vec<&ContextCall>, Option<ContextCut>)> {
    let find = |id: u32| {
        let at = all.partition_point(|c| c.id < id);
        all.get(at).filter(|c| c.id == id)
    };
    let mut chain: Vec<&ContextCall> =
        std::iter::successors(find(context), |call| find(call.caller?)).collect();
    let cut = chain.last()?.cut;
    let begins = |call: &&&ContextCall| {
        let file = call.file.as_deref().map(file_name).unwrap_or_default();
        is_beginning(call.function.as_deref(), &file)
    };
    let beginnings = chain.iter().rev().take_while(begins).count();
    chain.truncate((chain.len() - beginnings).max(1));
    Some((chain, cut))
}

/// The functions on the way to a region from outside inwards, each with its file's path. A function that calls itself stands once.
/// Empty if the context isn't known.
pub fn functions(all: &[ContextCall], context: u32) -> Vec<(String, Option<&str>)> {
    let (chain, _) = chain(all, context).unwrap_or_default();
    let calls = chain.into_iter().rev();
    let mut calls: Vec<_> = calls
        .map(|call| (function(call).replace('\n', " "), call.file.as_deref()))
        .collect();
    calls.dedup();
    calls
}

/// Of each library's consecutive calls the first, by which it was entered, and the last two: the innermost may be a wrapper that all regions
/// share. Those with names, where there are any. `is_outermost`: what is in the first file stays, which is the program.
fn telling<'s, 'c>(steps: &'s [Step<'c>], is_outermost: bool) -> Vec<&'s Step<'c>> {
    let mut all = vec![];
    for (nth, run) in steps.chunk_by(|a, b| a.file == b.file).enumerate() {
        let named: Vec<&Step<'_>> = run.iter().filter(|s| s.has_name).collect();
        match &named[..] {
            _ if nth == 0 && is_outermost => all.extend(run),
            [] => all.extend(run.last()),
            [first, .., a, b] => all.extend([*first, *a, *b]),
            few => all.extend(few.iter().copied()),
        }
    }
    all
}

/// The function; without one the place in the file, behind the function's begin where that is known: never an address alone.
fn function(call: &ContextCall) -> String {
    if call.language == Some(Language::Python) {
        return python::function(call);
    }
    match (&call.function_demangled, &call.file) {
        (Some(function), _) => function.clone(),
        (None, Some(file)) => {
            let address = call.address.trim_start_matches("0x");
            let number = u64::from_str_radix(address, 16).ok();
            let begin = number
                .zip(call.offset)
                .and_then(|(a, o)| Some((a.checked_sub(o)?, o)));
            match begin {
                Some((begin, offset)) => {
                    format!("{}:{}+{offset:#x}", file_name(file), unnamed(begin))
                }
                None => format!("{}+0x{address}", file_name(file)),
            }
        }
        (None, None) => format!("code in no file at {}", call.address),
    }
}

/// The file's name; of a module of CPython without version and platform, which all of them have.
fn file_name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.split_once(".cpython-") {
        Some((module, rest)) if rest.ends_with(".so") => format!("{module}.so"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From outside inwards: file, function.
    fn calls(calls: &[(&str, Option<&str>)]) -> Vec<ContextCall> {
        let call = |(at, (file, function)): (u32, &(&str, Option<&str>))| ContextCall {
            id: at,
            caller: (at > 1).then(|| at - 1),
            file: (!file.is_empty()).then(|| (*file).to_owned()),
            build_id: None,
            address: format!("{:#x}", 16 * at),
            function: function.map(str::to_owned),
            function_demangled: function.map(str::to_owned),
            offset: function.map(|_| 4),
            source: None,
            line: None,
            language: None,
            cut: None,
        };
        (1..).zip(calls).map(call).collect()
    }

    #[test]
    fn what_comes_before_main_is_left_out_and_recursion_stands_once() {
        let all = calls(&[
            ("/p", Some("_start")),
            ("/lib/libc.so.6", Some("__libc_start_main")),
            ("/p", Some("main")),
            ("/p", Some("two")),
            ("/p", Some("two")),
            ("/p", Some("work")),
        ]);
        assert_eq!(called_from(&all, 6).as_deref(), Some("main › two › work"));
        assert_eq!(called_from(&all, 3).as_deref(), Some("main"));
        assert_eq!(called_from(&all, 7), None);
        assert_eq!(called_from(&all, 0), None);
    }

    #[test]
    fn a_library_is_entered_by_the_function_that_others_call() {
        let all = calls(&[
            ("/p", Some("main")),
            ("/l/libblas.so", Some("cblas_dgemm")),
            ("/l/libblas.so", None),
            ("/l/libblas.so", Some("exec_blas")),
        ]);
        let expected = "main › libblas.so: cblas_dgemm › exec_blas";
        assert_eq!(called_from(&all, 4).as_deref(), Some(expected));
        let library = ["execute", "primitive", "product", "parallel"];
        let library = library.map(|name| ("/l/libdnnl.so", Some(name)));
        let all = calls(&[&[("/p", Some("main"))], &library[..]].concat());
        let expected = "main › libdnnl.so: execute › product › parallel";
        assert_eq!(called_from(&all, 5).as_deref(), Some(expected));
        let all = calls(&[("/p", Some("main")), ("/l/x.so", None), ("", None)]);
        let expected = "main › x.so+0x20 › code in no file at 0x30";
        assert_eq!(called_from(&all, 3).as_deref(), Some(expected));
    }

    #[test]
    fn the_innermost_calls_of_a_long_or_cut_chain_are_named() {
        let names = ["main", "a", "b", "c", "d", "e"];
        let all: Vec<_> = names.iter().map(|name| ("/p", Some(*name))).collect();
        let mut all = calls(&all);
        assert_eq!(
            called_from(&all, 6).as_deref(),
            Some("… › a › b › c › d › e")
        );
        assert_eq!(called_from(&all, 2).as_deref(), Some("main › a"));
        all[0].cut = Some(ContextCut::Depth);
        assert_eq!(called_from(&all, 2).as_deref(), Some("… › main › a"));
    }
}
