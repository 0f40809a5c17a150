//! Files that are read piece by piece.

use super::super::ProfileError;
use super::super::parquet::ProfileRows;
use super::{Scan, Scanned};
use crate::exchange::{Folder, FolderError, FolderRows};
use crate::table::{COUNT, CsvRows, ParquetRows, ROW, TableError, XuTable};
use bytes::{Buf, Bytes};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};

/// First bytes of a Parquet file.
const PARQUET_MAGIC: &[u8] = b"PAR1";
/// Rows that are read at once.
const PIECE: usize = 1 << 16;
/// Bytes that a byte of text or of records takes, at most.
const TEXT: u64 = 10;

/// How much memory it takes, at most, to combine a file's XUs with others, judging by its size and its columns.
///
/// # Errors
/// [`PieceError`] if it is a broken Parquet file.
pub fn need(bytes: &Bytes) -> Result<u64, PieceError> {
    if !bytes.starts_with(PARQUET_MAGIC) {
        return Ok((bytes.len() as u64).saturating_mul(TEXT));
    }
    let metadata = ArrowReaderMetadata::load(bytes, ArrowReaderOptions::new());
    let metadata = metadata.map_err(ProfileError::from)?;
    let rows = metadata.metadata().file_metadata().num_rows();
    let columns = metadata.schema().fields().len() as u64;
    Ok((rows.max(0) as u64).saturating_mul(ROW + COUNT * columns))
}

/// A file that is read piece by piece: a profile, or a foreign recorder's table.
pub struct Pieces {
    format: Format,
    /// Rows in a piece.
    limit: usize,
}

enum Format {
    Csv(Box<CsvRows<bytes::buf::Reader<Bytes>>>),
    Table(Box<ParquetRows>),
    Profile(Box<ProfileRows>, Vec<u16>),
    Folder(Box<FolderRows>),
}

/// A file that can't be read piece by piece.
#[derive(Debug, thiserror::Error)]
pub enum PieceError {
    /// A profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// Another recorder's table.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A profile in several files.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl Pieces {
    /// Of a file's bytes.
    ///
    /// # Errors
    /// [`PieceError`] says what it is instead.
    pub fn open(bytes: Bytes) -> Result<Pieces, PieceError> {
        Pieces::with_limit(bytes, PIECE)
    }

    /// Of a profile in several files.
    ///
    /// # Errors
    /// [`PieceError`] if one of them is damaged.
    pub fn of_folder(folder: Folder, files: Vec<Bytes>) -> Result<Pieces, PieceError> {
        Ok(Pieces {
            format: Format::Folder(Box::new(FolderRows::new(folder, files, PIECE)?)),
            limit: PIECE,
        })
    }

    pub(super) fn with_limit(bytes: Bytes, limit: usize) -> Result<Pieces, PieceError> {
        let format = if bytes.starts_with(PARQUET_MAGIC) {
            match ProfileRows::new(bytes.clone(), limit) {
                Err(ProfileError::NoSummary) => {
                    Format::Table(Box::new(ParquetRows::new(bytes, limit)?))
                }
                rows => Format::Profile(Box::new(rows?), vec![]),
            }
        } else {
            Format::Csv(Box::new(CsvRows::new(bytes.reader())?))
        };
        Ok(Pieces { format, limit })
    }

    /// The next rows; none at the end.
    ///
    /// # Errors
    /// [`PieceError`] says where it is broken.
    pub fn read(&mut self) -> Result<XuTable, PieceError> {
        Ok(match &mut self.format {
            Format::Csv(rows) => rows.read(self.limit)?,
            Format::Table(rows) => rows.read()?,
            Format::Profile(rows, origins) => {
                let (table, found) = rows.read()?;
                if origins.is_empty() || !table.is_empty() {
                    *origins = found;
                }
                table
            }
            Format::Folder(rows) => rows.read()?,
        })
    }

    /// Reads all of it for the first time. `name`: what the user calls it.
    ///
    /// # Errors
    /// [`PieceError`] says where it is broken.
    pub fn scan(mut self, name: &str) -> Result<Scanned, PieceError> {
        let mut scan = Scan::default();
        let last = loop {
            let piece = self.read()?;
            match &self.format {
                Format::Profile(..) => scan.add(&piece),
                Format::Folder(rows) if rows.is_whole() => scan.add(&piece),
                _ => scan.add_with_sums(&piece),
            }
            if piece.is_empty() {
                break piece;
            }
        };
        let known = match self.format {
            Format::Profile(rows, origins) => Some((rows.into_summary(), origins)),
            Format::Folder(rows) => {
                let sums = std::mem::take(&mut scan.sums);
                Some(rows.into_known(sums, name, &last))
            }
            _ => None,
        };
        Ok(scan.finish(name, known))
    }
}
