//! Calling contexts as the report has them.

use crate::model::{ContextCall, ContextCut, Language};
use ompfuse_fuse::names::readable;
use ompfuse_fuse::run::{ContextFrame, Contexts, Cut};
use ompfuse_patterns::is_runtime_library;

/// The calls, and by a context's number in the summary its innermost one's.
pub(super) fn calls(contexts: &Contexts) -> (Vec<ContextCall>, Vec<Option<u32>>) {
    let is_runtime: Vec<bool> = (contexts.objects.iter())
        .map(|o| is_runtime_library(file_name(&o.path)))
        .collect();
    // Callers come before what they call. A frame of the runtime's stands for its caller.
    let (mut calls, mut ids): (Vec<ContextCall>, Vec<Option<u32>>) = (vec![], vec![]);
    for (number, frame) in (1..).zip(&contexts.frames) {
        let caller = frame
            .parent
            .and_then(|p| ids.get(p as usize).copied().flatten());
        let in_runtime = frame.object.is_some_and(|o| is_runtime[o as usize]);
        if in_runtime {
            ids.push(caller);
            continue;
        }
        ids.push(Some(number));
        calls.push(call(contexts, frame, number, caller));
    }
    (calls, ids)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn call(contexts: &Contexts, frame: &ContextFrame, id: u32, caller: Option<u32>) -> ContextCall {
    let object = frame.object.and_then(|o| contexts.objects.get(o as usize));
    let name = &frame.name;
    ContextCall {
        id,
        caller,
        file: object.map(|o| o.path.clone()),
        build_id: object.and_then(|o| o.build_id.clone()),
        address: format!("{:#x}", frame.address),
        function: name.function.clone(),
        function_demangled: name.function.as_deref().map(|f| readable(f).into_owned()),
        offset: name.offset,
        source: name.file.clone(),
        line: name.line,
        language: object
            .and_then(|o| o.python.as_ref())
            .map(|_| Language::Python),
        cut: frame.cut.map(|cut| match cut {
            Cut::Depth => ContextCut::Depth,
            Cut::Unknown => ContextCut::Unknown,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ompfuse_fuse::run::{ContextObject, FrameName};

    #[test]
    fn frames_of_the_runtime_are_left_out() {
        let object = |path: &str| ContextObject {
            path: path.to_owned(),
            build_id: None,
            python: None,
        };
        let frame = |parent, object, address| ContextFrame {
            parent,
            object,
            address,
            cut: None,
            name: FrameName::default(),
        };
        let contexts = Contexts {
            objects: vec![object("/a/program"), object("/usr/lib/libgomp.so.1")],
            frames: vec![
                frame(None, Some(0), 0x10),
                frame(Some(0), Some(1), 0x20),
                frame(Some(1), Some(0), 0x30),
                frame(None, None, 0x40),
            ],
        };
        let (calls, ids) = calls(&contexts);
        assert_eq!(ids, [Some(1), Some(1), Some(3), Some(4)]);
        let chain: Vec<_> = calls.iter().map(|c| (c.id, c.caller)).collect();
        assert_eq!(chain, [(1, None), (3, Some(1)), (4, None)]);
        assert_eq!(calls[2].file, None);
        assert_eq!(calls[2].address, "0x40");
    }
}
