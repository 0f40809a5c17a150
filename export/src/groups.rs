//! Groups of units as Arrow IPC streams: what an engine feeds to a process, and gets back from it.

use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use ompfuse_fuse::exchange::{GroupError, Groups};
use std::io::{self, Read, Write};

/// What ends a stream.
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Why a stream of groups is not combined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// It is no stream, or a broken one.
    #[error("the input is no whole Arrow IPC stream: {0}")]
    Input(#[source] ArrowError),
    /// It has no end.
    #[error("the input ends early: an Arrow IPC stream has a mark at its end")]
    Early,
    /// What it holds is wrong.
    #[error(transparent)]
    Groups(#[from] GroupError),
    /// The result can't be written.
    #[error("the result can't be written: {0}")]
    Output(#[source] ArrowError),
}

/// Combines the groups of one stream, and writes the result as another. The result has its end only if all is well.
///
/// # Errors
/// [`StreamError`] says what is wrong.
pub fn combine(
    input: impl Read,
    output: impl Write,
    groups: &mut Groups,
) -> Result<(), StreamError> {
    let mut input = Last {
        input,
        last: [0; 8],
    };
    let reader = StreamReader::try_new(&mut input, None).map_err(StreamError::Input)?;
    let schema = groups.schema()?;
    let mut writer = StreamWriter::try_new(output, &schema).map_err(StreamError::Output)?;
    for batch in reader {
        let ended = groups.add(&batch.map_err(StreamError::Input)?)?;
        for batch in ended {
            writer.write(&batch).map_err(StreamError::Output)?;
        }
    }
    if input.last != END {
        return Err(StreamError::Early);
    }
    if let Some(batch) = groups.end()? {
        writer.write(&batch).map_err(StreamError::Output)?;
    }
    writer.finish().map_err(StreamError::Output)
}

/// Remembers the last bytes: who reads a stream takes the end of all bytes for its end.
struct Last<R> {
    input: R,
    last: [u8; 8],
}

impl<R: Read> Read for Last<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(into)?;
        let new = &into[..read];
        let kept = 8usize.saturating_sub(new.len());
        self.last.rotate_left(8 - kept);
        self.last[kept..].copy_from_slice(&new[new.len() - (8 - kept)..]);
        Ok(read)
    }
}
