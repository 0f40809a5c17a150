//! Names for calling contexts and locks: after a run the files that calls and locks were in are looked at, and what they tell is kept in the run's
//! folder. So reports need no program or library.

use crate::atomic;
use crate::debug::DebugArgs;
use crate::input;
use crate::load;
use anyhow::Result;
use ompfuse_format::run::RunModule;
use ompfuse_fuse::run::{
    Addresses, ContextNames, ContextObject, DataName, FrameName, NAMES_FILE, NamedObject,
};
use ompfuse_rewriter::addresses::{self, AddressName, VariableName};
use std::path::Path;

/// Names what a run's contexts have. `modules`: the patched files, whose originals are named.
pub(crate) fn name(run: &Path, modules: &[RunModule], debug: &DebugArgs) -> Result<()> {
    let all = load::with_files(run, |files| Ok(files.addresses()))?;
    if all.is_empty() {
        return Ok(());
    }
    let objects = all.into_iter();
    let named = objects.map(|(object, addresses)| of_file(&object, &addresses, modules, debug));
    let names = ContextNames {
        objects: named.collect(),
    };
    let file = run.join(NAMES_FILE);
    let json = serde_json::to_vec(&names)?;
    atomic::write(&file, &json, 0o600)
}

fn of_file(
    object: &ContextObject,
    wanted: &Addresses,
    modules: &[RunModule],
    debug: &DebugArgs,
) -> NamedObject {
    let module = modules.iter().find(|m| m.patched == object.path);
    let mut named = NamedObject {
        loaded: object.path.clone(),
        object: match module {
            Some(module) => ContextObject {
                path: module.binary.path.clone(),
                build_id: module.binary.build_id.clone(),
                python: None,
            },
            None => object.clone(),
        },
        ..NamedObject::default()
    };
    // What can't be read, as what the kernel has made itself, has addresses only.
    let Ok(bytes) = input::map(Path::new(&object.path)) else {
        return named;
    };
    // It may have been replaced since.
    let id = addresses::build_id(&bytes);
    if object.build_id.is_some() && object.build_id != id {
        return named;
    }
    let separate = debug.find(Path::new(&named.object.path), &bytes);
    let code: Vec<u64> = wanted.code.iter().copied().collect();
    let names = addresses::names(&bytes, separate.files(), &code);
    let names = code.into_iter().zip(names.into_iter().map(frame_name));
    named.names = names.collect();
    let data: Vec<u64> = wanted.data.iter().copied().collect();
    let names = addresses::variables(&bytes, separate.files(), &data);
    let names = data.into_iter().zip(names);
    let name = |(at, name): (u64, Option<VariableName>)| {
        let VariableName {
            symbol,
            offset,
            member,
        } = name?;
        let name = DataName {
            symbol,
            offset,
            member,
        };
        Some((at, name))
    };
    named.data = names.filter_map(name).collect();
    named
}

fn frame_name(name: AddressName) -> FrameName {
    let (file, line) = name.source.map(|s| (s.file, s.line)).unzip();
    FrameName {
        function: name.function,
        offset: name.offset,
        file,
        line,
    }
}
