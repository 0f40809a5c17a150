//! What a region is called, and where it is.

use ompfuse_account::model::{Region, Report};
use ompfuse_format::Construct;
use ompfuse_format::site::Source;
use ompfuse_fuse::names::{narrowed, readable};

/// Characters of a name or place in a sentence, where template arguments can be left out.
const WIDEST: usize = 60;

/// A name or place where it is a part of a sentence.
pub(crate) fn in_sentence(text: &str) -> String {
    narrowed(text, WIDEST).into_owned()
}

/// What a place is.
pub(crate) fn what(
    construct: Option<Construct>,
    function: Option<&str>,
    source: Option<&Source>,
) -> String {
    let mut text = construct.map_or("region", Construct::name).to_owned();
    if let Some(function) = function {
        text += &format!(" in {}", in_sentence(&readable(function)));
    }
    if let Some(source) = source {
        let file = source.file.rsplit('/').next().unwrap_or(&source.file);
        text += &format!(", {file}:{}", source.line);
    }
    text.replace('\n', " ")
}

/// The construct, with the one that it is combined with.
pub(crate) fn kind(region: &Region) -> String {
    let construct = region.construct.map_or("xu", Construct::name);
    // The function is what people look for; its group stands behind it.
    if region.construct.is_some_and(Construct::is_call)
        && let Some((function, _)) = region.detail.as_deref().and_then(|d| d.split_once(", "))
    {
        return function.to_owned();
    }
    // Other source code gives the same instructions.
    if region.detail.as_deref() == Some("or equivalent") {
        return format!("{construct} or equivalent");
    }
    match region.combined_with {
        Some(inner) => format!("{construct} {}", inner.name()),
        None => construct.to_owned(),
    }
}

/// What a region is called where it stands alone: `parallel loop solve.c:61`.
pub fn called(region: &Region) -> String {
    format!("{} {}", kind(region), location(region)).replace('\n', " ")
}

/// Source line, or function and address, behind the file where the profile has several.
pub(crate) fn location(region: &Region) -> String {
    let function = region.function.as_deref();
    let place = match (region.construct, function) {
        (Some(Construct::Function), Some(name)) => readable(name).into_owned(),
        _ => place(region.source.as_ref(), function, &region.name),
    };
    match &region.file {
        Some(file) => format!("{file}: {place}"), // the front is cut where room is short
        None => place,
    }
}

/// A place by its source line, or else its function, and `name`, which is its address.
pub fn place(source: Option<&Source>, function: Option<&str>, name: &str) -> String {
    match (source, function) {
        (Some(source), _) => {
            let file = source.file.rsplit('/').next().unwrap_or(&source.file);
            let line = format!("{file}:{}", source.line);
            // Instances of a template have one line.
            match function.and_then(instance) {
                Some(instance) => format!("{line} {instance}"),
                None => line,
            }
        }
        (None, Some(function)) => format!("{} {name}", readable(function)),
        (None, None) => name.to_owned(),
    }
}

/// The name of a template's instance, without what it is in and without what compilers append to it.
fn instance(function: &str) -> Option<String> {
    let name = readable(&function[..function.find('.').unwrap_or(function.len())]).into_owned();
    let arguments = name.find('<')?;
    let begin = name[..arguments].rfind("::").map_or(0, |at| at + 2);
    Some(name[begin..].to_owned())
}

/// Most characters of a template's arguments in a short name.
const ARGUMENTS: usize = 24;

/// The last two parts of a name, without types of numbers and without long template arguments: `brgemm_matmul_t<39>::execute`.
pub(crate) fn short(name: &str) -> String {
    let (mut depth, mut parts) = (0_i32, vec![0]);
    let bytes = name.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'<' | b'(' | b'{' => depth += 1,
            b'>' | b')' | b'}' => depth -= 1,
            b':' if depth == 0 && at > 0 && bytes[at - 1] == b':' => parts.push(at + 1),
            _ => {}
        }
    }
    let last = &name[parts[parts.len().saturating_sub(2)]..];
    // `(ns::isa)39` is a number of an enumeration.
    let (mut text, mut rest) = (String::new(), last);
    while let Some((before, after)) = rest.split_once('(') {
        text += before;
        match after.split_once(')') {
            Some((_, number)) if number.starts_with(|c: char| c.is_ascii_digit()) => rest = number,
            _ => {
                text.push('(');
                rest = after;
            }
        }
    }
    text += rest;
    let arguments = text.find('<').zip(text.rfind('>'));
    match arguments {
        Some((from, to)) if to > from + ARGUMENTS => {
            format!("{}<…>{}", &text[..from], &text[to + 1..])
        }
        _ => text,
    }
}

/// The program that was recorded, as the command names it: behind a launcher (`mpirun -n 2 ./lu`) the first argument that names a
/// recorded file.
pub(crate) fn recorded_program(report: &Report) -> &str {
    let is_recorded = |word: &&String| {
        let name = word.rsplit('/').next();
        let mut files = report.modules.iter();
        files.any(|module| module.path.rsplit('/').next() == name)
    };
    let mut words = std::iter::once(&report.program).chain(&report.args);
    words.find(is_recorded).unwrap_or(&report.program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_the_last_two_parts() {
        for (name, wanted) in [
            ("main", "main"),
            ("dnnl::impl::parallel", "impl::parallel"),
            (
                "dnnl::impl::cpu::matmul::brgemm_matmul_t<(dnnl::impl::cpu::cpu_isa_t)39>::execute",
                "brgemm_matmul_t<39>::execute",
            ),
            (
                "a::scale<std::vector<long, std::allocator<long> > >::run",
                "scale<…>::run",
            ),
            ("a::operator<", "a::operator<"),
            (
                "a::b::{lambda(int)#1}::operator()",
                "{lambda(int)#1}::operator()",
            ),
        ] {
            assert_eq!(short(name), wanted);
        }
    }

    #[test]
    fn instances_of_templates_are_told_apart() {
        let source = Source {
            file: "/src/a.cc".to_owned(),
            line: 5,
        };
        for (function, wanted) in [
            ("_ZN2ns5scaleIlEEvPT_i._omp_fn.0", "a.cc:5 scale<long>"),
            ("_Z5scaleIdEvPT_i", "a.cc:5 scale<double>"),
            ("_Z4workv._omp_fn.0", "a.cc:5"),
            ("main", "a.cc:5"),
        ] {
            assert_eq!(place(Some(&source), Some(function), ""), wanted);
        }
    }
}
