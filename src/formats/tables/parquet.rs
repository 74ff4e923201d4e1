//! The table as a Parquet file.
//!
//! A full row group is of one input and one event, and its rows come in the order of the recording: events, threads and
//! times distinguish groups by their least and greatest values. Inside of it rows are sorted by the function that ran,
//! so that its pages distinguish them, and a Bloom filter shows which groups a function is not in.
//!
//! Nothing in a file shows when or where it was written: equal rows make equal files.

use super::chunks::Chunks;
use super::description;
use super::read::{TableReader, is_wanted};
use super::schema::{VERSION, VERSION_KEY};
use super::stack_table::StackTable;
use super::writer::{BatchWriter, TableWriter};
use crate::contract::format::ReadPieces;
use crate::contract::options::{ReadOptions, WriteOptions};
use crate::contract::rows;
use crate::contract::rows::RowWriter;
use crate::error::{Error, Result, Skipped};
use crate::model::stacks::Profile;
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use std::cell::Cell;
use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Once};

/// True if this is a Parquet file.
pub fn sniff(head: &[u8]) -> bool {
    head.starts_with(b"PAR1")
}

/// Looks at a table, whose row groups are read side by side. Those that are damaged are left out; without its end, no
/// file shows where they are.
pub fn open<'b>(bytes: &'b [u8], options: &ReadOptions) -> Result<Box<dyn ReadPieces + 'b>> {
    let groups = RowGroups::of(bytes, |column| is_wanted(column, options))?;
    TableReader::new(groups.schema(), options)?;
    Ok(Box::new(TableGroups { groups, options: options.clone() }))
}

/// The row groups of a table.
struct TableGroups<'b> {
    groups: RowGroups<'b>,
    options: ReadOptions,
}

impl ReadPieces for TableGroups<'_> {
    fn what(&self) -> &'static str {
        "row group"
    }

    fn count(&self) -> usize {
        self.groups.count().max(1)
    }

    fn read(&self, group: usize, skipped: &mut Skipped) -> Profile {
        let Ok(mut table) = TableReader::new(self.groups.schema(), &self.options) else { return Profile::new() };
        if group < self.groups.count()
            && let Err(error) = self.groups.read(group, &mut |batch| table.batch(batch))
        {
            skipped.add(error);
        }
        table.profile
    }
}

/// The row groups of a file.
pub(super) struct RowGroups<'b> {
    bytes: &'b [u8],
    metadata: ArrowReaderMetadata,
    wanted: ProjectionMask,
    /// True if each may be read.
    fits: Vec<Result<(), String>>,
}

impl<'b> RowGroups<'b> {
    /// Those of a file, with the wanted columns.
    pub(super) fn of(bytes: &'b [u8], is_wanted: impl Fn(&str) -> bool) -> Result<Self> {
        let metadata = guarded(|| {
            let metadata = Arc::new(description::read(bytes)?);
            ArrowReaderMetadata::try_new(metadata, ArrowReaderOptions::new()).map_err(unreadable)
        })?;
        let schema = metadata.parquet_schema().root_schema().get_fields();
        let wanted = (0..schema.len()).filter(|root| is_wanted(schema[*root].name()));
        let wanted = ProjectionMask::roots(metadata.parquet_schema(), wanted);
        let mut left = description::Left::of(bytes);
        let groups = metadata.metadata().row_groups().iter();
        let fits =
            groups.map(|group| left.take(group, |leaf| wanted.leaf_included(leaf)).map_err(|error| error.to_string()));
        Ok(Self { bytes, fits: fits.collect(), wanted, metadata })
    }

    pub(super) fn schema(&self) -> &Schema {
        self.metadata.schema()
    }

    pub(super) fn count(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    /// Reads one. Rows read before an error stay read.
    pub(super) fn read(&self, group: usize, each: &mut dyn FnMut(&RecordBatch) -> Result<()>) -> Result<()> {
        guarded(|| self.read_batches(group, each)).map_err(|error| {
            let first = self.metadata.metadata().row_group(group).columns().first();
            let start = first.map(|column| column.dictionary_page_offset().unwrap_or(column.data_page_offset()));
            error.at(start.and_then(|start| u64::try_from(start).ok()).unwrap_or(0))
        })
    }

    fn read_batches(&self, group: usize, each: &mut dyn FnMut(&RecordBatch) -> Result<()>) -> Result<()> {
        /// Rows are read side by side as long as their frames are not too many.
        const ROWS: usize = 1 << 13;
        const VALUES: usize = 1 << 20;
        self.fits[group].clone().map_err(Error::new)?;
        let (schema, about) = (self.metadata.parquet_schema(), self.metadata.metadata().row_group(group));
        let mut fields = self.metadata.schema().fields().to_vec();
        let (mut places, mut most) = (Vec::new(), 0);
        for (leaf, column) in about.columns().iter().enumerate().filter(|(leaf, _)| self.wanted.leaf_included(*leaf)) {
            let (start, len) = column.byte_range();
            let place = Chunks::place(self.bytes, start, len)?;
            let are_keys = description::check_pages(&self.bytes[place.clone()], column)?;
            let field = &mut fields[schema.get_column_root_idx(leaf)];
            *field = Arc::new(shared_texts(field, are_keys));
            places.push(place);
            most = most.max(column.num_values());
        }
        let fields = Schema::new_with_metadata(fields, self.metadata.schema().metadata().clone());
        let options = ArrowReaderOptions::new().with_schema(Arc::new(fields));
        let metadata = ArrowReaderMetadata::try_new(self.metadata.metadata().clone(), options).map_err(unreadable)?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(Chunks::of(self.bytes, places), metadata);
        let builder = builder.with_row_groups(vec![group]).with_projection(self.wanted.clone());
        let deep = usize::try_from(most / about.num_rows().max(1)).unwrap_or(VALUES);
        let reader = builder.with_batch_size((VALUES / deep.max(1)).clamp(1, ROWS)).build();
        for batch in reader.map_err(unreadable)? {
            each(&batch.map_err(|error| Error::new("cannot be read").because(error))?)?;
        }
        Ok(())
    }
}

/// A field in the one type that its like is read in, whatever the tool that wrote it calls it: lists have offsets of 32
/// bits, and texts are not copied for each value, but are keys of their dictionary, or views where not all have keys.
fn shared_texts(field: &Field, are_keys: bool) -> Field {
    use DataType::{
        Binary, BinaryView, Dictionary, FixedSizeList, LargeBinary, LargeList, LargeListView, LargeUtf8, List,
        ListView, Map, Struct, Utf8, Utf8View,
    };
    let inner = |field: &Field| Arc::new(shared_texts(field, are_keys));
    let shared = match field.data_type() {
        Dictionary(_, of) if !is_text(of) => (**of).clone(),
        text if is_text(text) && are_keys => Dictionary(Box::new(DataType::Int32), Box::new(Utf8)),
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | Dictionary(..) => Utf8View,
        List(of) | LargeList(of) | ListView(of) | LargeListView(of) | FixedSizeList(of, _) => List(inner(of)),
        Struct(of) => Struct(of.iter().map(|of| inner(of)).collect()),
        Map(of, sorted) => Map(inner(of), *sorted),
        other => other.clone(),
    };
    field.clone().with_data_type(shared)
}

fn is_text(of: &DataType) -> bool {
    use DataType::{Binary, BinaryView, Dictionary, LargeBinary, LargeUtf8, Utf8, Utf8View};
    match of {
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView => true,
        Dictionary(_, of) => is_text(of),
        _ => false,
    }
}

fn unreadable(error: ParquetError) -> Error {
    Error::new("cannot be read").because(error)
}

/// Writes all events.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    rows::write_whole(&mut *start(options, Box::new(out))?, profile)
}

/// Starts a file, to which rows are written as they come.
pub fn start<'o>(options: &WriteOptions, out: Box<dyn Write + 'o>) -> Result<Box<dyn RowWriter + 'o>> {
    let file = ParquetFile { is_sorted: options.partitioned && !options.shared_groups, ..ParquetFile::new(out) };
    Ok(Box::new(TableWriter::new(file, options)))
}

/// Starts a file of distinct stacks.
pub(super) fn start_stacks<'o>(_options: &WriteOptions, out: Box<dyn Write + 'o>) -> Result<Box<dyn RowWriter + 'o>> {
    Ok(Box::new(StackTable::new(ParquetFile::new(out))?))
}

/// Writes a small table of one batch, as it is: to pack columns of a few values takes more time and space than it saves.
pub(super) fn write_batch(batch: &RecordBatch, out: &mut dyn Write) -> Result<()> {
    let properties = usual_properties().set_dictionary_enabled(false).build();
    let mut file = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).map_err(failed)?;
    file.write(batch).map_err(failed)?;
    Ok(out.write_all(&file.into_inner().map_err(failed)?)?)
}

struct ParquetFile<'o> {
    out: Box<dyn Write + 'o>,
    /// Finished groups are taken out of it.
    file: Option<ArrowWriter<Vec<u8>>>,
    /// True if every group is of one input and event, and so sorted by what ran.
    is_sorted: bool,
}

impl<'o> ParquetFile<'o> {
    fn new(out: Box<dyn Write + 'o>) -> Self {
        Self { out, file: None, is_sorted: false }
    }
}

impl BatchWriter for ParquetFile<'_> {
    const GROUP: usize = 1 << 17;
    const SORTED: bool = true;

    fn start(&mut self, schema: &SchemaRef) -> Result<()> {
        let sorted_by = place_of_leaf(schema).filter(|_| self.is_sorted);
        let properties = properties(sorted_by).map_err(failed)?;
        self.file = Some(ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties)).map_err(failed)?);
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write(batch).map_err(failed)?;
        // The rest of small inputs shares a group.
        if file.in_progress_rows() >= Self::GROUP { self.group() } else { Ok(()) }
    }

    fn group(&mut self) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.flush().map_err(failed)?;
        file.sync()?;
        Ok(self.out.write_all(&std::mem::take(file.inner_mut()))?)
    }

    fn finish(&mut self) -> Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        Ok(self.out.write_all(&file.into_inner().map_err(failed)?)?)
    }
}

/// The column of the innermost function: what ran: a map is two columns there.
fn place_of_leaf(schema: &Schema) -> Option<i32> {
    let leaf = schema.index_of("leaf").ok()?;
    let maps = schema.fields()[..leaf].iter().filter(|field| matches!(field.data_type(), DataType::Map(..)));
    i32::try_from(leaf + maps.count()).ok()
}

fn properties(sorted_by: Option<i32>) -> Result<WriterProperties, ParquetError> {
    /// A page of the sorted column has this many rows: what is left out at once.
    const PAGE_ROWS: usize = 1 << 13;
    /// The largest number of functions in a group for which a filter is made.
    const FUNCTIONS: u64 = 1 << 13;
    let column = |name: &str| ColumnPath::from(name);
    let mut properties = usual_properties()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_sorting_columns(
            sorted_by.map(|column_idx| vec![SortingColumn { column_idx, descending: false, nulls_first: true }]),
        )
        .set_data_page_row_count_limit(PAGE_ROWS);
    for name in ["leaf", "pid", "tid"] {
        properties = properties
            .set_column_bloom_filter_enabled(column(name), true)
            .set_column_bloom_filter_max_ndv(column(name), FUNCTIONS);
    }
    for name in ["time", "time_ns"] {
        properties = properties
            .set_column_dictionary_enabled(column(name), false)
            .set_column_encoding(column(name), Encoding::DELTA_BINARY_PACKED);
    }
    Ok(properties.build())
}

fn usual_properties() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_created_by(concat!("jitgraft ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_max_row_group_row_count(None)
        .set_key_value_metadata(Some(vec![KeyValue::new(VERSION_KEY.to_owned(), VERSION.to_owned())]))
}

fn failed(error: ParquetError) -> Error {
    Error::new("cannot write the file").because(error)
}

thread_local! {
    /// True if this thread reads what may make it panic.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Reads; the crate takes some numbers of a file for granted and panics where they are wrong. Such a file is damaged, as
/// others are: a panic is an error, and nobody is reported for it in other words.
fn guarded<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    static SILENCE: Once = Once::new();
    SILENCE.call_once(|| {
        let told = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                told(panic);
            }
        }));
    });
    GUARDED.set(true);
    let read = panic::catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(false);
    read.unwrap_or_else(|_| Err(Error::new("cannot be read: its description lists more, or less, than it contains")))
}
