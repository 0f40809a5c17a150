//! In which order, and how, inputs are combined.

use super::{OF_READING, Source, by_type, each_piece, name, pieces, read, read_with, with_files};
use crate::output::note;
use anyhow::Result;
use ompfuse_format::Construct;
use ompfuse_fuse::Strategy;
use ompfuse_fuse::combine::{arrangement, brought_to_front};
use ompfuse_fuse::evaluate::{Sample, typical};
use ompfuse_fuse::run::RunReader;
use ompfuse_progress::Progress;

/// The inputs in their order, and the strategy. With `None` for `wanted`, the default: a typical run first, labels, and behaviour
/// where runs share events. A run that needs more than about `memory` bytes is looked at in parts.
pub(crate) fn arranged(
    mut inputs: Vec<Source>,
    wanted: Option<Strategy>,
    memory: u64,
    progress: Progress<'_>,
) -> Result<(Vec<Source>, Strategy)> {
    if let Some(strategy) = wanted {
        progress.advance(1.0);
        return Ok((inputs, strategy));
    }
    // Sums have no units to be matched: regions go by their places.
    if inputs.len() < 2 || inputs.iter().all(Source::has_sums_only) {
        progress.advance(1.0);
        return Ok((inputs, Strategy::Lgl));
    }
    // What can't be read is told when all of it is read.
    let events: Vec<Vec<String>> = inputs
        .iter()
        .map(|i| events(i).unwrap_or_default())
        .collect();
    let found = arrangement(&events);
    let looked_at = found.alike.len() + found.beside.len();
    let each = progress.part(1.0 / looked_at.max(1) as f64);
    let read = |list: &[usize]| -> Result<Vec<Sample>> {
        let samples = list.iter().map(|&at| {
            let sample = sample(&inputs[at], &events[0], memory, each);
            sample.inspect(|_| each.advance(1.0 - OF_READING))
        });
        samples.collect()
    };
    let (samples, beside) = (read(&found.alike)?, read(&found.beside)?);
    if samples.is_empty() {
        progress.advance(1.0);
    }
    if let Some(&first) = found.alike.get(typical(&samples, &beside)) {
        note(format_args!(
            "{} is the most typical of {} runs that counted {}: the times and these counts are from it",
            inputs[first].name(),
            samples.len(),
            events[first].join(",")
        ));
        brought_to_front(&mut inputs, first);
    }
    let strategy = match found.by_behaviour {
        true => Strategy::Joint,
        false => Strategy::Lgl,
    };
    Ok((inputs, strategy))
}

impl Source {
    /// What the user calls it.
    fn name(&self) -> String {
        match self {
            Source::Run(path) | Source::File(path) => name(path),
        }
    }
}

/// The events of an input, of which as little is read as possible.
fn events(input: &Source) -> Result<Vec<String>> {
    Ok(match input {
        Source::Run(folder) => read_with(folder, &[".json"], |files| Ok(files.counted()))?,
        Source::File(path) => {
            let piece = pieces(path)?.read()?;
            piece.events.into_iter().map(|e| e.name).collect()
        }
    })
}

/// Enough of an input's counts of these events to compare it with others.
fn sample(
    input: &Source,
    events: &[String],
    memory: u64,
    progress: Progress<'_>,
) -> Result<Sample> {
    let progress = progress.part(OF_READING);
    let mut sample = Sample::of_events(events);
    match input {
        Source::Run(folder) if by_type::fits(std::slice::from_ref(input), memory)? => {
            sample.add(&read(folder, progress)?.xus);
        }
        Source::Run(folder) => with_files(folder, |files| {
            let mut reader = RunReader::new(files);
            let places = reader.places();
            let all: usize = places.iter().map(|p| p.xus).sum();
            for place in places.into_iter().filter(|p| p.xus > 0) {
                let wanted = |site, construct: Construct| site == place.site && construct.is_xu();
                sample.add(&reader.read(&wanted).run.xus);
                progress.steps(place.xus, all);
            }
            Ok(())
        })?,
        Source::File(path) => {
            each_piece(path, |piece| sample.add(piece))?;
            progress.advance(1.0);
        }
    }
    Ok(sample)
}
