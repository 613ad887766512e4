//! What the client says, frame by frame. A pipe or a socket, which is ours alone, is watched by the system; anything else, a
//! terminal or a file, is shared with whoever started us and read on a thread of its own.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::thread;

use tokio::io::AsyncReadExt;
use tokio::net::{UnixStream, unix::pipe};
use tokio::sync::mpsc;
use unstuck_wire::mcp::{Framer, Piece};

/// What is read at once.
const CHUNK: usize = 64 * 1024;

/// Reads frames.
pub(super) struct Intake {
    source: Source,
    buffer: Vec<u8>,
    framer: Framer,
    ready: VecDeque<Piece>,
    is_over: bool,
}

enum Source {
    Pipe(pipe::Receiver),
    Socket(UnixStream),
    Thread(mpsc::Receiver<Vec<u8>>),
}

impl Intake {
    /// Reads from a file that nobody else reads from.
    pub(super) fn new(file: OwnedFd, most: usize) -> io::Result<Intake> {
        let file = File::from(file);
        let kind = file.metadata()?.file_type();
        let source = if kind.is_fifo() {
            Source::Pipe(pipe::Receiver::from_owned_fd(file.into())?)
        } else if kind.is_socket() {
            let socket = StdUnixStream::from(OwnedFd::from(file));
            socket.set_nonblocking(true)?;
            Source::Socket(UnixStream::from_std(socket)?)
        } else {
            Source::Thread(read_apart(file)?)
        };
        Ok(Intake {
            source,
            buffer: vec![0; CHUNK],
            framer: Framer::new(most),
            ready: VecDeque::new(),
            is_over: false,
        })
    }

    /// The next frame; nothing when there are no more. Whoever stops waiting has read nothing.
    pub(super) async fn next(&mut self) -> Option<Piece> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            if self.is_over {
                return None;
            }
            let read = match &mut self.source {
                Source::Pipe(pipe) => pipe.read(&mut self.buffer).await.unwrap_or(0),
                Source::Socket(socket) => socket.read(&mut self.buffer).await.unwrap_or(0),
                Source::Thread(chunks) => match chunks.recv().await {
                    Some(chunk) => {
                        self.buffer = chunk;
                        self.buffer.len()
                    }
                    None => 0,
                },
            };
            match read {
                0 => {
                    self.is_over = true;
                    self.framer.finish(|piece| self.ready.push_back(piece));
                }
                read => self.framer.feed(&self.buffer[..read], |piece| self.ready.push_back(piece)),
            }
        }
    }
}

fn read_apart(mut file: File) -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let (tell, told) = mpsc::channel(4);
    thread::Builder::new().name("unstuck-intake".to_owned()).spawn(move || {
        let mut buffer = vec![0; CHUNK];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return,
                Ok(read) => {
                    if tell.blocking_send(buffer[..read].to_vec()).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    })?;
    Ok(told)
}
