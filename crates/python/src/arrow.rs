//! Exports tables over Arrow's C stream interface: three structs with a permanently fixed layout. Nothing is copied.
//! The crate `arrow-array` would do the same, and add 50 seconds of CPU time to a build.
//!
//! <https://arrow.apache.org/docs/format/CDataInterface.html> and `CStreamInterface.html` say what must free what. Here
//! everything that a struct points to is owned by its `private_data`, which also holds the table, and `release` drops
//! it.
#![allow(unsafe_code)]
// Lengths of data in memory fit in 63 bits.
#![allow(clippy::cast_possible_wrap)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use topolane_simulator::{Column, Table, Values};

/// The flag that a column may have null values.
const NULLABLE: i64 = 2;

#[repr(C)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Array,
    dictionary: *mut Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private_data: *mut c_void,
}

/// A stream of one array: a struct whose fields are a table's columns.
///
/// A consumer moves it by copying its bytes and overwriting the original, where every field may then be null.
#[repr(C)]
pub struct Stream {
    get_schema: Option<unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Stream, *mut Array) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    private_data: *mut c_void,
}

// SAFETY: `private_data` points to a `StreamSource`, which has no other owner. A `StreamSource` is `Send`, because a
// `Table` is `Send` and `Sync`.
unsafe impl Send for Stream {}

struct StreamSource {
    table: Arc<Table>,
    is_read: bool,
}

impl Stream {
    /// Returns the stream of a table.
    pub fn of(table: Arc<Table>) -> Self {
        let source = Box::new(StreamSource { table, is_read: false });
        Stream {
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(get_last_error),
            release: Some(release_stream),
            private_data: Box::into_raw(source).cast(),
        }
    }
}

impl Drop for Stream {
    /// A consumer that has moved the stream leaves the original without `release`.
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: `release` is there, so the stream was neither moved nor released, and is as `of` made it.
            unsafe { release(self) };
        }
    }
}

unsafe extern "C" fn release_stream(stream: *mut Stream) {
    // SAFETY: the interface demands a stream that was not released. `of` made its source with `Box::into_raw`; it is
    // dropped once, because `release` is taken away here.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<StreamSource>()));
        (*stream).private_data = ptr::null_mut();
        (*stream).release = None;
    }
}

unsafe extern "C" fn get_schema(stream: *mut Stream, out: *mut Schema) -> c_int {
    // SAFETY: the interface demands a stream that was not released, so its source lives, calls that do not overlap,
    // and room for a schema, whose old bytes `write` does not read.
    unsafe {
        let source = (*stream).private_data.cast::<StreamSource>();
        ptr::write(out, Schema::of_table(&(*source).table));
    }
    0
}

unsafe extern "C" fn get_next(stream: *mut Stream, out: *mut Array) -> c_int {
    // SAFETY: as in `get_schema`, with room for an array. An array without `release` ends the stream.
    unsafe {
        let source = (*stream).private_data.cast::<StreamSource>();
        let next = if (*source).is_read {
            Array::none()
        } else {
            (*source).is_read = true;
            Array::of_table(&(*source).table)
        };
        ptr::write(out, next);
    }
    0
}

unsafe extern "C" fn get_last_error(_: *mut Stream) -> *const c_char {
    ptr::null()
}

/// The data that a schema points to. It is on the heap, so moving the `Box` moves neither the name nor the list of
/// children.
struct SchemaNames {
    name: CString,
    children: Vec<*mut Schema>,
}

impl Schema {
    fn of_table(table: &Table) -> Self {
        let children = table.columns().iter().map(|column| {
            let format = match column.values {
                Values::Ids(_) => c"L",
                Values::Whole(_) | Values::Optional(..) => c"l",
                Values::Numbers(..) => c"g",
                Values::Text(_) => c"U",
            };
            // The formats are literals, which are never freed.
            let child = Schema::new(format.as_ptr(), &column.name, NULLABLE, Vec::new());
            Box::into_raw(Box::new(child))
        });
        Schema::new(c"+s".as_ptr(), "", 0, children.collect())
    }

    fn new(format: *const c_char, name: &str, flags: i64, children: Vec<*mut Schema>) -> Self {
        let name = CString::new(name).unwrap_or_default();
        let mut names = Box::new(SchemaNames { name, children });
        Schema {
            format,
            name: names.name.as_ptr(),
            metadata: ptr::null(),
            flags,
            n_children: names.children.len() as i64,
            children: names.children.as_mut_ptr(),
            dictionary: ptr::null_mut(),
            release: Some(release_schema),
            private_data: Box::into_raw(names).cast(),
        }
    }
}

unsafe extern "C" fn release_schema(schema: *mut Schema) {
    // SAFETY: the interface demands a schema that was not released. `new` made its `SchemaNames`, and `of_table` its
    // children, with `Box::into_raw`; they are dropped once, because `release` is taken away here. A child that the
    // consumer has taken over has no `release` any more; its struct is freed here, what it points to by the consumer.
    unsafe {
        let names = Box::from_raw((*schema).private_data.cast::<SchemaNames>());
        for &child in &names.children {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
        (*schema).release = None;
    }
}

/// The data that an array points to. An array taken out of its parent stays valid, because each array keeps the table
/// alive.
struct Buffers {
    /// Keeps the values of the buffers alive; a table never changes.
    _table: Arc<Table>,
    _present: Option<Vec<u8>>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut Array>,
}

impl Array {
    /// Returns the array that marks the end of a stream.
    fn none() -> Self {
        Array {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: ptr::null_mut(),
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }

    fn of_table(table: &Arc<Table>) -> Self {
        let child = |column| Box::into_raw(Box::new(Array::of_column(table, column)));
        let children = table.columns().iter().map(child).collect();
        let buffers = Buffers {
            _table: Arc::clone(table),
            _present: None,
            buffers: vec![ptr::null()],
            children,
        };
        Array::new(table.rows(), 0, buffers)
    }

    fn of_column(table: &Arc<Table>, column: &Column) -> Self {
        let present = column.values.present();
        let absent = present.iter().flatten().filter(|&&present| !present).count();
        let present = present.filter(|_| absent > 0).map(|present| bits(&present));
        let mut buffers = vec![present.as_ref().map_or(ptr::null(), |bits| bits.as_ptr().cast())];
        match &column.values {
            Values::Ids(values) => buffers.push(values.as_ptr().cast()),
            Values::Whole(values) | Values::Optional(values, _) => {
                buffers.push(values.as_ptr().cast());
            }
            Values::Numbers(values, _) => buffers.push(values.as_ptr().cast()),
            Values::Text(texts) => {
                buffers.push(texts.offsets().as_ptr().cast());
                buffers.push(texts.bytes().as_ptr().cast());
            }
        }
        let own =
            Buffers { _table: Arc::clone(table), _present: present, buffers, children: Vec::new() };
        Array::new(column.values.len(), absent, own)
    }

    fn new(length: usize, absent: usize, buffers: Buffers) -> Self {
        let mut buffers = Box::new(buffers);
        Array {
            length: length as i64,
            null_count: absent as i64,
            n_buffers: buffers.buffers.len() as i64,
            n_children: buffers.children.len() as i64,
            buffers: buffers.buffers.as_mut_ptr(),
            children: buffers.children.as_mut_ptr(),
            release: Some(release_array),
            private_data: Box::into_raw(buffers).cast(),
            ..Array::none()
        }
    }
}

unsafe extern "C" fn release_array(array: *mut Array) {
    // SAFETY: as in `release_schema`, with `Buffers` and the children that `of_table` made.
    unsafe {
        let buffers = Box::from_raw((*array).private_data.cast::<Buffers>());
        for &child in &buffers.children {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
        (*array).release = None;
    }
}

/// Packs booleans into bits, the first into the lowest.
fn bits(present: &[bool]) -> Vec<u8> {
    let byte =
        |eight: &[bool]| eight.iter().rev().fold(0, |byte, &present| byte << 1 | u8::from(present));
    present.chunks(8).map(byte).collect()
}
