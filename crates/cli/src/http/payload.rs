//! What is sent with a request. It can be opened as often as the request is sent.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use crate::exit::CommandError;
use crate::scratch::Scratch;

/// How much of what is piped in is kept in memory; more goes into a file of its own.
const IN_MEMORY: u64 = 1 << 20;
/// So much of a text is shown in the record.
const SHOWN_MAX: usize = 4096;

/// What is sent.
pub(crate) enum Payload {
    Nothing,
    Bytes(Vec<u8>),
    File(PathBuf),
    /// What was piped in, and is too long for the memory.
    Kept {
        folder: Scratch,
        length: u64,
    },
}

/// Something to read from, with its length.
pub(super) struct Opened {
    pub(super) reader: Box<dyn Read>,
    pub(super) length: u64,
}

impl Payload {
    /// Reads what a person wrote: `@FILE`, `@-` for standard input, or the text itself.
    pub(crate) fn read(written: &str) -> Result<Payload, CommandError> {
        match written.strip_prefix('@') {
            None => Ok(Payload::Bytes(written.as_bytes().to_vec())),
            Some("-") => Payload::piped(&mut io::stdin().lock()),
            Some(path) => {
                let path = PathBuf::from(path);
                let unreadable = |source| CommandError::Unreadable { path: path.clone(), source };
                let about = File::open(&path).and_then(|file| file.metadata()).map_err(unreadable)?;
                match about.is_file() {
                    true => Ok(Payload::File(path)),
                    // A pipe or a device can be read once only.
                    false => Payload::piped(&mut File::open(&path).map_err(unreadable)?).map_err(|error| {
                        match error {
                            CommandError::Input(source) => unreadable(source),
                            error => error,
                        }
                    }),
                }
            }
        }
    }

    fn piped(input: &mut dyn Read) -> Result<Payload, CommandError> {
        let mut bytes = Vec::new();
        input.take(IN_MEMORY + 1).read_to_end(&mut bytes).map_err(CommandError::Input)?;
        if bytes.len() as u64 <= IN_MEMORY {
            return Ok(Payload::Bytes(bytes));
        }
        let folder = Scratch::make("http")?;
        let path = folder.path().join(KEPT);
        let not_made = |source| CommandError::NotMade { path: path.clone(), source };
        let mut file = File::create_new(&path).map_err(not_made)?;
        let mut all = bytes.as_slice().chain(input);
        let length = io::copy(&mut all, &mut file).map_err(CommandError::Input)?;
        Ok(Payload::Kept { folder, length })
    }

    /// Opens it from its beginning.
    pub(super) fn open(&self) -> Result<Option<Opened>, (PathBuf, io::Error)> {
        let file = |path: PathBuf, length: Option<u64>| {
            let opened = File::open(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
            let (now, file) = opened.map_err(|error| (path, error))?;
            let length = length.unwrap_or(now);
            // It may be growing: what was announced is what is sent.
            Ok(Some(Opened { reader: Box::new(file.take(length)), length }))
        };
        match self {
            Payload::Nothing => Ok(None),
            Payload::Bytes(bytes) => {
                let length = bytes.len() as u64;
                Ok(Some(Opened { reader: Box::new(io::Cursor::new(bytes.clone())), length }))
            }
            Payload::File(path) => file(path.clone(), None),
            Payload::Kept { folder, length } => file(folder.path().join(KEPT), Some(*length)),
        }
    }

    /// It in a few words, so that two requests that send different things are two.
    pub(super) fn shown(&self) -> Option<String> {
        match self {
            Payload::Nothing => None,
            Payload::Bytes(bytes) => match str::from_utf8(bytes) {
                Ok(text) if text.len() <= SHOWN_MAX => Some(text.to_owned()),
                Ok(_) | Err(_) => {
                    Some(format!("{} bytes, {}", bytes.len(), &blake3::hash(bytes).to_hex()[..16]))
                }
            },
            Payload::File(path) => Some(format!("@{}", path.display())),
            Payload::Kept { length, .. } => Some(format!("{length} bytes from standard input")),
        }
    }
}

/// The name of the file for what was piped in.
const KEPT: &str = "piped";
