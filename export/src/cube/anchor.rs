//! The description: metrics, regions, the call tree, machines with their processes and threads.

use crate::calltree::{CallTree, Frame, FrameKind, Metric, Quantity};
use crate::kinds::{COMPILER, kind};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::io;

type Xml = Writer<Vec<u8>>;

/// `order`: the threads in the order of locations.
pub(super) fn anchor(tree: &CallTree, order: &[usize]) -> io::Result<Vec<u8>> {
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 1);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let cube = xml
        .create_element("cube")
        .with_attribute(("version", "4.4"));
    cube.write_inner_content(|xml| {
        let creator = concat!("ompfuse ", env!("CARGO_PKG_VERSION"));
        for (key, value) in [("Creator", creator), ("CUBE_CT_AGGR", "SUM")] {
            let attr = xml.create_element("attr").with_attribute(("key", key));
            attr.with_attribute(("value", value)).write_empty()?;
        }
        xml.create_element("metrics")
            .write_inner_content(|xml| metrics(xml, tree))?;
        xml.create_element("program")
            .write_inner_content(|xml| program(xml, tree))?;
        xml.create_element("system")
            .write_inner_content(|xml| system(xml, tree, order))?;
        Ok(())
    })?;
    let mut bytes = xml.into_inner();
    bytes.push(b'\n');
    Ok(bytes)
}

/// An element with a text. Characters that XML has no place for become the one for such.
fn text(xml: &mut Xml, name: &str, text: &str) -> io::Result<()> {
    let is_bad =
        |c: char| (c.is_control() && !c.is_whitespace()) || matches!(c, '\u{fffe}' | '\u{ffff}');
    let clean: String = text
        .chars()
        .map(|c| if is_bad(c) { '\u{fffd}' } else { c })
        .collect();
    xml.create_element(name)
        .write_text_content(BytesText::new(&clean))?;
    Ok(())
}

fn number(n: usize) -> String {
    n.to_string()
}

fn metrics(xml: &mut Xml, tree: &CallTree) -> io::Result<()> {
    let roots = tree
        .metrics
        .iter()
        .enumerate()
        .filter(|(_, m)| m.part_of.is_none());
    roots
        .into_iter()
        .try_for_each(|(at, m)| metric(xml, tree, at, m))
}

fn metric(xml: &mut Xml, tree: &CallTree, at: usize, metric_: &Metric) -> io::Result<()> {
    let (dtype, unit) = match metric_.quantity {
        Quantity::Time => ("DOUBLE", "sec"),
        Quantity::Visits => ("UINT64", "occ"),
        Quantity::Event => ("UINT64", "#"),
    };
    let element = xml
        .create_element("metric")
        .with_attribute(("id", &*number(at)));
    let element = element.with_attribute(("type", "EXCLUSIVE"));
    element.write_inner_content(|xml| {
        let name = &metric_.name;
        let mut title = name.clone();
        if let Some(first) = title
            .get_mut(..1)
            .filter(|_| metric_.quantity != Quantity::Event)
        {
            first.make_ascii_uppercase();
        }
        for (key, value) in [
            ("disp_name", &*title),
            ("uniq_name", &*name.replace(' ', "_")),
            ("dtype", dtype),
            ("uom", unit),
            ("url", ""),
            ("descr", &metric_.description),
        ] {
            text(xml, key, value)?;
        }
        let parts = tree
            .metrics
            .iter()
            .enumerate()
            .filter(|(_, m)| m.part_of == Some(at));
        parts
            .into_iter()
            .try_for_each(|(at, part)| metric(xml, tree, at, part))
    })?;
    Ok(())
}

fn program(xml: &mut Xml, tree: &CallTree) -> io::Result<()> {
    for (at, frame) in tree.frames.iter().enumerate() {
        region(xml, at, frame)?;
    }
    let mut below: Vec<Vec<usize>> = vec![vec![]; tree.nodes.len()];
    for (at, node) in tree.nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            below[parent].push(at);
        }
    }
    // The first is the program.
    cnode(xml, tree, &below, 0)
}

fn cnode(xml: &mut Xml, tree: &CallTree, below: &[Vec<usize>], at: usize) -> io::Result<()> {
    let element = xml
        .create_element("cnode")
        .with_attribute(("id", &*number(at)));
    let element = element.with_attribute(("calleeId", &*number(tree.nodes[at].frame)));
    if below[at].is_empty() {
        element.write_empty()?;
        return Ok(());
    }
    element.write_inner_content(|xml| {
        below[at]
            .iter()
            .try_for_each(|&inner| cnode(xml, tree, below, inner))
    })?;
    Ok(())
}

/// Lines that are not known.
const NO_LINE: &str = "-1";

fn region(xml: &mut Xml, at: usize, frame: &Frame) -> io::Result<()> {
    let line = frame
        .line
        .map_or_else(|| NO_LINE.to_owned(), |line| line.to_string());
    let module = frame
        .file
        .as_deref()
        .or(frame.module.as_deref())
        .unwrap_or_default();
    let (paradigm, role) = match frame.kind {
        FrameKind::Region(Some(construct)) => {
            let kind = kind(construct);
            (kind.model.cube, kind.cube_role)
        }
        FrameKind::Region(None) => ("openmp", "unknown"),
        FrameKind::Function => (COMPILER.cube, "function"),
        FrameKind::Program => ("measurement", "artificial"),
    };
    let mod_: String = module
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    let element = xml
        .create_element("region")
        .with_attribute(("id", &*number(at)));
    let element = element
        .with_attribute(("mod", &*mod_))
        .with_attribute(("begin", &*line));
    element
        .with_attribute(("end", &*line))
        .write_inner_content(|xml| {
            let mangled = frame.function.as_deref().unwrap_or(&frame.name);
            for (key, value) in [
                ("name", &*frame.name),
                ("mangled_name", mangled),
                ("paradigm", paradigm),
                ("role", role),
                ("url", ""),
                ("descr", ""),
            ] {
                text(xml, key, value)?;
            }
            Ok(())
        })?;
    Ok(())
}

fn system(xml: &mut Xml, tree: &CallTree, order: &[usize]) -> io::Result<()> {
    let process = |at: &usize| tree.threads[order[*at]].process;
    let ranks = tree.ranks();
    let places: Vec<usize> = (0..order.len()).collect();
    let machine = xml
        .create_element("systemtreenode")
        .with_attribute(("Id", "0"));
    machine.write_inner_content(|xml| {
        text(xml, "name", "machine")?;
        text(xml, "class", "machine")?;
        let host = |at: &usize| &*tree.processes[process(at)].host;
        for (nth, on_host) in places.chunk_by(|a, b| host(a) == host(b)).enumerate() {
            let id = number(nth + 1);
            let node = xml
                .create_element("systemtreenode")
                .with_attribute(("Id", &*id));
            node.write_inner_content(|xml| {
                text(xml, "name", on_host.first().map_or("", host))?;
                text(xml, "class", "node")?;
                for of_process in on_host.chunk_by(|a, b| process(a) == process(b)) {
                    group(xml, tree, order, &ranks, of_process)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    })?;
    Ok(())
}

/// A process with its threads, which are at these positions of `order`. `ranks`: numbers of processes.
fn group(
    xml: &mut Xml,
    tree: &CallTree,
    order: &[usize],
    ranks: &[u32],
    places: &[usize],
) -> io::Result<()> {
    let Some(&first) = places.first() else {
        return Ok(());
    };
    let at = tree.threads[order[first]].process;
    let process = &tree.processes[at];
    let element = xml
        .create_element("locationgroup")
        .with_attribute(("Id", &*number(at)));
    element.write_inner_content(|xml| {
        text(xml, "name", &process.name())?;
        text(xml, "rank", &ranks[at].to_string())?;
        text(xml, "type", "process")?;
        for &place in places {
            let thread = tree.threads[order[place]].number.to_string();
            let location = xml
                .create_element("location")
                .with_attribute(("Id", &*number(place)));
            location.write_inner_content(|xml| {
                // Of a job's ranks only the sums of threads are known.
                let name = match process.pid {
                    Some(_) => format!("thread {thread}"),
                    None => "all threads".to_owned(),
                };
                text(xml, "name", &name)?;
                text(xml, "rank", &thread)?;
                text(xml, "type", "thread")
            })?;
        }
        Ok(())
    })?;
    Ok(())
}
