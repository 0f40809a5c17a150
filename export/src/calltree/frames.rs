//! The frames of a call-path profile, each with a name of its own.

use super::{Frame, FrameKind};
use ompfuse_account::{Region, Report};
use ompfuse_report::words;
use std::collections::{BTreeMap, HashMap};

/// Frames while they are found.
pub(super) struct Frames<'r> {
    report: &'r Report,
    regions: HashMap<u32, &'r Region>,
    index: HashMap<Key, usize>,
    list: Vec<Frame>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Program,
    Function(String, Option<String>),
    Region(Option<u32>),
}

impl<'r> Frames<'r> {
    pub(super) fn new(report: &'r Report) -> Frames<'r> {
        Frames {
            report,
            regions: report.regions.iter().map(|r| (r.id, r)).collect(),
            index: HashMap::new(),
            list: vec![],
        }
    }

    fn find(&mut self, key: Key, make: impl FnOnce(&Self) -> Frame) -> usize {
        if let Some(&known) = self.index.get(&key) {
            return known;
        }
        let frame = make(self);
        self.index.insert(key, self.list.len());
        self.list.push(frame);
        self.list.len() - 1
    }

    pub(super) fn program(&mut self) -> usize {
        self.find(Key::Program, |frames| {
            let program = &frames.report.program;
            let name = program.rsplit('/').next().unwrap_or(program);
            Frame {
                name: name.replace('\n', " "),
                kind: FrameKind::Program,
                function: None,
                file: None,
                line: None,
                module: Some(program.clone()),
                build_id: None,
                address: None,
            }
        })
    }

    /// A function in a file.
    pub(super) fn function(&mut self, name: &str, file: Option<&str>) -> usize {
        let key = Key::Function(name.to_owned(), file.map(str::to_owned));
        self.find(key, |_| Frame {
            name: name.to_owned(),
            kind: FrameKind::Function,
            function: None,
            file: None,
            line: None,
            module: file.map(str::to_owned),
            build_id: None,
            address: None,
        })
    }

    /// A region by its `id`; `None`: its place is not known.
    pub(super) fn region(&mut self, id: Option<u32>) -> usize {
        self.find(Key::Region(id), |frames| {
            let region = id.and_then(|id| frames.regions.get(&id));
            let Some(region) = region else {
                return Frame {
                    name: "unknown place".to_owned(),
                    kind: FrameKind::Region(None),
                    function: None,
                    file: None,
                    line: None,
                    module: None,
                    build_id: None,
                    address: None,
                };
            };
            let module = region.module.as_ref();
            let modules = &frames.report.modules;
            let known = modules
                .iter()
                .find(|m| m.build_id.as_ref().or(Some(&m.path)) == module);
            let source = region.source.as_ref();
            Frame {
                name: words::called(region),
                kind: FrameKind::Region(region.construct),
                function: region.function.clone(),
                file: source.map(|s| s.file.clone()),
                line: source.map(|s| s.line),
                module: known.map(|m| m.path.clone()),
                build_id: known.and_then(|m| m.build_id.clone()),
                address: region.address.map(|a| a.0),
            }
        })
    }

    /// The frames. Those that would be called alike get what tells them apart.
    pub(super) fn list(self) -> Vec<Frame> {
        let mut list = self.list;
        let mut named: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, frame) in list.iter().enumerate() {
            named.entry(frame.name.clone()).or_default().push(at);
        }
        for same in named.into_values().filter(|same| same.len() > 1) {
            for (nth, at) in same.into_iter().enumerate() {
                let frame = &mut list[at];
                let module = frame.module.as_deref().unwrap_or_default();
                let module = module.rsplit('/').next().unwrap_or(module);
                let what = match (frame.address, frame.kind) {
                    (Some(address), _) => format!("{module} {address:#x}"),
                    (None, FrameKind::Program) => "program".to_owned(),
                    (None, _) => format!("{module} {}", nth + 1),
                };
                frame.name += &format!(" ({what})");
            }
        }
        list
    }
}
