//! Files of control groups: they stay open, and are always written from the beginning.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Opens a file for writing settings.
pub fn to_write(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// Writes a setting in a single system call.
pub fn set(file: &File, value: &str) -> io::Result<()> {
    file.write_all_at(value.as_bytes(), 0)
}
