//! pprof's profile: a sample for each path and thread, with a value for each metric; functions with files and lines. Samples of the
//! processor's time are two further metrics, of entries of their own.

mod messages;

use crate::calltree::{CallTree, Frame, FrameKind, Quantity, Samples};
use flate2::Compression;
use flate2::write::GzEncoder;
use messages::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use prost::Message;
use std::collections::HashMap;
use std::io::{self, Write};

/// Writes a profile, compressed as pprof's tools expect it. Times are nanoseconds.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, tree: &CallTree) -> io::Result<()> {
    let mut compressed = GzEncoder::new(out, Compression::default());
    compressed.write_all(&profile(tree).encode_to_vec())?;
    compressed.finish()?;
    Ok(())
}

fn profile(tree: &CallTree) -> Profile {
    let mut strings = Strings::default();
    strings.number("");
    let sample_type = tree.metrics.iter().map(|metric| ValueType {
        r#type: strings.number(&metric.name),
        unit: strings.number(match metric.quantity {
            Quantity::Time => "nanoseconds",
            Quantity::Visits | Quantity::Event => "count",
        }),
    });
    let mut sample_type: Vec<ValueType> = sample_type.collect();
    let mut mappings = Mappings::default();
    let (mut location, mut function) = (vec![], vec![]);
    for (id, frame) in (1..).zip(&tree.frames) {
        function.push(of_frame(&mut strings, id, frame));
        location.push(Location {
            id,
            mapping_id: mappings.number(
                &mut strings,
                frame.module.as_deref(),
                frame.build_id.as_deref(),
            ),
            address: frame.address.unwrap_or(0),
            line: vec![Line {
                function_id: id,
                line: frame.line.map_or(0, i64::from),
            }],
        });
    }
    let threads = 0..tree.threads.len();
    let labels: Vec<Vec<Label>> = threads.map(|at| labels(&mut strings, tree, at)).collect();
    let mut sample = vec![];
    for (at, node) in tree.nodes.iter().enumerate() {
        let stack: Vec<u64> = tree
            .around(at)
            .map(|at| tree.nodes[at].frame as u64 + 1)
            .collect();
        for (&thread, values) in &node.own {
            sample.push(Sample {
                location_id: stack.clone(),
                value: values.iter().map(|&v| v as i64).collect(),
                label: labels[thread].clone(),
            });
        }
    }
    if let Some(samples) = &tree.samples {
        for (name, unit) in [("samples", "count"), ("cpu", "nanoseconds")] {
            sample_type.push(ValueType {
                r#type: strings.number(name),
                unit: strings.number(unit),
            });
        }
        sample
            .iter_mut()
            .for_each(|exact| exact.value.extend([0, 0]));
        let first = location.len() as u64 + 1;
        let mut functions = HashMap::new();
        for (id, frame) in (first..).zip(&samples.frames) {
            let module = frame.object.as_deref().unwrap_or(&tree.program);
            let file = frame.file.as_deref().unwrap_or_default();
            let next = function.len() as u64 + 1;
            let function_id = *functions.entry((&frame.name, file)).or_insert(next);
            if function_id == next {
                let name = strings.number(&frame.name);
                function.push(Function {
                    id: next,
                    name,
                    system_name: name,
                    filename: strings.number(file),
                    start_line: 0,
                });
            }
            location.push(Location {
                id,
                mapping_id: mappings.number(&mut strings, Some(module), None),
                address: 0,
                line: vec![Line {
                    function_id,
                    line: frame.line.map_or(0, i64::from),
                }],
            });
        }
        let stacks = sampled(tree, samples, first);
        sample.extend(stacks.map(|(thread, location_id, value)| Sample {
            location_id,
            value,
            label: labels[thread].clone(),
        }));
    }
    Profile {
        sample_type,
        sample,
        mapping: mappings.list,
        location,
        function,
        default_sample_type: strings.number("time"),
        duration_nanos: tree.duration_ns.unwrap_or(0) as i64,
        string_table: strings.list,
    }
}

/// The samples: thread, stack and values. `first`: the location of the first function.
fn sampled(
    tree: &CallTree,
    samples: &Samples,
    first: u64,
) -> impl Iterator<Item = (usize, Vec<u64>, Vec<i64>)> {
    samples.stacks.iter().map(move |stack| {
        let functions = stack.frames.iter().rev().map(|&at| first + at as u64);
        let path = tree.around(stack.node);
        let path = path.map(|at| tree.nodes[at].frame as u64 + 1);
        let mut values = vec![0; tree.metrics.len()];
        let cpu_ns = stack.samples.saturating_mul(samples.period_ns);
        values.extend([stack.samples as i64, cpu_ns as i64]);
        (stack.thread, functions.chain(path).collect(), values)
    })
}

/// Who a thread's samples are of. As texts: readers leave out a number that is 0.
fn labels(strings: &mut Strings, tree: &CallTree, thread: usize) -> Vec<Label> {
    let thread = tree.threads[thread];
    let process = &tree.processes[thread.process];
    let label = |(key, number): (&str, Option<u32>)| {
        Some(Label {
            str: strings.number(&number?.to_string()),
            key: strings.number(key),
        })
    };
    let who = [
        ("thread", Some(thread.number)),
        ("process", process.pid),
        ("mpi_rank", process.mpi_rank),
    ];
    who.into_iter().filter_map(label).collect()
}

fn of_frame(strings: &mut Strings, id: u64, frame: &Frame) -> Function {
    let system = match frame.kind {
        FrameKind::Region(_) => frame.function.as_deref(),
        FrameKind::Program | FrameKind::Function => None,
    };
    Function {
        id,
        name: strings.number(&frame.name),
        system_name: strings.number(system.unwrap_or(&frame.name)),
        filename: strings.number(frame.file.as_deref().unwrap_or_default()),
        start_line: frame.line.map_or(0, i64::from),
    }
}

/// Each text once.
#[derive(Default)]
struct Strings {
    list: Vec<String>,
    index: HashMap<String, i64>,
}

impl Strings {
    fn number(&mut self, text: &str) -> i64 {
        if let Some(&known) = self.index.get(text) {
            return known;
        }
        let number = self.list.len() as i64;
        self.index.insert(text.to_owned(), number);
        self.list.push(text.to_owned());
        number
    }
}

/// Programs and libraries.
#[derive(Default)]
struct Mappings {
    list: Vec<Mapping>,
    index: HashMap<i64, u64>,
}

impl Mappings {
    /// The number of a frame's, 0 if it has none.
    fn number(
        &mut self,
        strings: &mut Strings,
        module: Option<&str>,
        build_id: Option<&str>,
    ) -> u64 {
        let Some(module) = module else {
            return 0;
        };
        let filename = strings.number(module);
        let next = self.list.len() as u64 + 1;
        let id = *self.index.entry(filename).or_insert(next);
        if id == next {
            self.list.push(Mapping {
                id,
                filename,
                build_id: 0,
                has_functions: true,
                has_filenames: true,
                has_line_numbers: true,
            });
        }
        if let Some(build_id) = build_id {
            self.list[id as usize - 1].build_id = strings.number(build_id);
        }
        id
    }
}
