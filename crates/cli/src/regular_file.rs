//! Files that nobody may make us wait for: a pipe that nobody writes to, a device or an endless file in their place is refused.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Opens a file to read it, unless it is not a regular one.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    // Opening some devices does something, so they are not even opened.
    check(fs::metadata(path)?.is_file())?;
    let mut options = OpenOptions::new();
    options.read(true);
    // Something else may stand there by now.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, nix::fcntl::OFlag::O_NONBLOCK.bits());
    let file = options.open(path)?;
    check(file.metadata()?.is_file())?;
    Ok(file)
}

/// Reads all of it, unless it is longer than `most` bytes.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 <= most {
        true => Ok(bytes),
        false => Err(io::Error::other(format!("it is longer than {most} bytes"))),
    }
}

/// Reads a short text, if it is one.
pub(crate) fn text(path: &Path, most: u64) -> Option<String> {
    read(path, most).ok().and_then(|bytes| String::from_utf8(bytes).ok())
}

fn check(is_file: bool) -> io::Result<()> {
    match is_file {
        true => Ok(()),
        false => Err(io::Error::other("it is not a regular file")),
    }
}
