//! Files of /proc and of control groups that stay open, and are read and written from their beginning.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Opens a file to write settings into.
pub fn to_write(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// Writes a setting, in one system call.
pub fn set(file: &File, value: &str) -> io::Result<()> {
    file.write_all_at(value.as_bytes(), 0)
}

/// Reads all there is now.
pub fn text(file: &File) -> io::Result<String> {
    let mut read = Vec::new();
    let mut part = [0; 4096];
    loop {
        match file.read_at(&mut part, read.len() as u64)? {
            0 => return Ok(String::from_utf8_lossy(&read).into_owned()),
            length => read.extend_from_slice(&part[..length]),
        }
    }
}
