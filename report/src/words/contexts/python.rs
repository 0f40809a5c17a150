//! Python functions on the way to a region.

use super::{LEFT_OUT, Step, chain, file_name};
use ompfuse_account::model::{CallPath, ContextCall, Language};
use std::borrow::Cow;

/// Most of them that are named.
const MOST: usize = 3;

/// Files of packages and of Python itself, which the program's author didn't write. `<frozen importlib._bootstrap>` is such a name, too.
const OF_OTHERS: [&str; 4] = [
    "/site-packages/",
    "/dist-packages/",
    "/lib/python3",
    "<frozen ",
];

/// Whether a call says nothing: of what imports modules, and of what calls C functions for `ctypes`.
pub(super) fn is_between(call: &ContextCall) -> bool {
    let path = call.file.as_deref().unwrap_or_default();
    match call.language {
        Some(Language::Python) => path.starts_with("<frozen "),
        None => {
            let name = file_name(path);
            name.starts_with("libffi.so") || name.starts_with("_ctypes.")
        }
    }
}

/// File, line, and function.
pub(super) fn function(call: &ContextCall) -> String {
    let file = file_name(call.file.as_deref().unwrap_or("?"));
    let function = call.function.as_deref().unwrap_or("?");
    // What a function is defined in is at the same line.
    let function = function.rsplit("<locals>.").next().unwrap_or(function);
    match call.line {
        Some(line) => format!("{file}:{line} {function}"),
        None => format!("{file}: {function}"),
    }
}

/// The innermost calls from outside inwards, and the last one in the program's own files. `is_cut`: there are more outside.
pub(super) fn telling<'s>(steps: &'s [Step<'_>], is_cut: bool) -> Vec<Cow<'s, str>> {
    let mut first = steps.len().saturating_sub(MOST);
    let own = steps.iter().rposition(|step| is_own(step.file));
    let own = own.filter(|&own| own < first);
    if own.is_some() {
        first += 1;
    }
    let mut shown = vec![];
    if is_cut || own.unwrap_or(first) > 0 {
        shown.push(Cow::Borrowed(LEFT_OUT));
    }
    if let Some(own) = own {
        shown.push(Cow::Borrowed(steps[own].text.as_str()));
        if own + 1 < first {
            shown.push(Cow::Borrowed(LEFT_OUT));
        }
    }
    shown.extend(
        steps[first..]
            .iter()
            .map(|s| Cow::Borrowed(s.text.as_str())),
    );
    shown
}

/// Whether the program's author has written it.
fn is_own(file: Option<&str>) -> bool {
    let file = file.unwrap_or_default();
    !OF_OTHERS.iter().any(|part| file.contains(part))
}

/// The program's own line in Python that led to a region, with its function, and how many more there are: `train.py:31 fit and 2 more`. `None`:
/// another program called it, or it isn't known.
pub fn caller(contexts: &[ContextCall], paths: &[CallPath], region: u32) -> Option<String> {
    let is_python = |call: &ContextCall| call.language == Some(Language::Python);
    if !contexts.iter().any(is_python) {
        return None;
    }
    let mut found: Vec<(String, f64)> = vec![];
    for path in paths {
        if path.region != Some(region) || path.inclusive_s <= 0.0 {
            continue;
        }
        let above = |path: &&CallPath| paths.get(path.parent? as usize);
        let mut around = std::iter::successors(Some(path), above);
        let context = around.find_map(|path| path.context)?;
        let (calls, _) = chain(contexts, context)?;
        let mut calls = calls.into_iter().filter(|c| is_python(c) && !is_between(c));
        let innermost = calls.clone().next()?;
        let own = calls.find(|call| is_own(call.file.as_deref()));
        let text = function(own.unwrap_or(innermost));
        match found.iter_mut().find(|(known, _)| *known == text) {
            Some((_, seconds)) => *seconds += path.inclusive_s,
            None => found.push((text, path.inclusive_s)),
        }
    }
    let most = found.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let (most, _) = most?;
    Some(match found.len() {
        1 => most.clone(),
        n => format!("{most} and {} more", n - 1),
    })
}

#[cfg(test)]
mod tests {
    use super::super::called_from;
    use ompfuse_account::model::{ContextCall, Language};

    /// From outside inwards: file, line of Python or 0, function.
    fn calls(calls: &[(&str, u32, &str)]) -> Vec<ContextCall> {
        let call = |(at, &(file, line, function)): (u32, &(&str, u32, &str))| ContextCall {
            id: at,
            caller: (at > 1).then(|| at - 1),
            file: Some(file.to_owned()),
            build_id: None,
            address: "0x1".to_owned(),
            function: Some(function.to_owned()),
            function_demangled: Some(function.to_owned()),
            offset: None,
            source: None,
            line: (line > 0).then_some(line),
            language: (line > 0).then_some(Language::Python),
            cut: None,
        };
        (1..).zip(calls).map(call).collect()
    }

    #[test]
    fn the_programs_own_line_and_the_innermost_ones_are_named() {
        let few = calls(&[
            ("/home/me/train.py", 40, "<module>"),
            ("/home/me/train.py", 31, "fit"),
            (
                "/usr/lib/_ctypes.cpython-311-x86_64-linux-gnu.so",
                0,
                "call",
            ),
            ("/home/me/libboost.so", 0, "boost"),
            ("/home/me/libboost.so", 0, "update"),
        ]);
        assert_eq!(
            called_from(&few, 2).as_deref(),
            Some("train.py:40 <module> › train.py:31 fit")
        );
        assert_eq!(
            called_from(&few, 5).as_deref(),
            Some("train.py:40 <module> › train.py:31 fit › libboost.so: boost › update")
        );
        let package = "/usr/lib/python3.11/site-packages/boost/basic.py";
        let many = calls(&[
            ("/home/me/train.py", 40, "<module>"),
            ("/home/me/train.py", 31, "fit"),
            (package, 10, "train"),
            (package, 20, "loop"),
            (package, 30, "Booster.update"),
            (package, 35, "Booster.inner"),
            ("/home/me/libboost.so", 0, "update"),
        ]);
        assert_eq!(
            called_from(&many, 7).as_deref(),
            Some(
                "… › train.py:31 fit › … › basic.py:30 Booster.update › basic.py:35 Booster.inner › libboost.so: update"
            )
        );
    }

    #[test]
    fn imports_are_left_out() {
        let all = calls(&[
            ("/home/me/x.py", 1, "<module>"),
            ("<frozen importlib._bootstrap>", 700, "_find_and_load"),
            (
                "/usr/lib/python3.11/site-packages/y/__init__.py",
                7,
                "<module>",
            ),
        ]);
        assert_eq!(
            called_from(&all, 3).as_deref(),
            Some("x.py:1 <module> › __init__.py:7 <module>")
        );
    }
}
