//! A real server on this machine that does to each connection what it was told, and remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What is done to one connection.
pub(crate) type Deed = Box<dyn FnOnce(TcpStream) -> Asked + Send>;

/// What somebody asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    /// Its first line and its headers, these in small letters.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// The server.
pub(crate) struct Server {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// Serves one connection after the other; after the last deed nobody listens any more.
    pub(crate) fn that(deeds: Vec<Deed>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let remembered = Arc::clone(&asked);
        thread::spawn(move || {
            for deed in deeds {
                let (stream, _) = listener.accept().unwrap();
                let heard = deed(stream);
                remembered.lock().unwrap().push(heard);
            }
        });
        Server { url, asked }
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// All that was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// Answers with these bytes, and hangs up.
pub(crate) fn says(answer: impl Into<String>) -> Deed {
    let answer = answer.into();
    Box::new(move |mut stream| {
        let asked = listen(&stream);
        stream.write_all(answer.as_bytes()).ok();
        asked
    })
}

/// Answers with a status, some headers and a body of that length.
pub(crate) fn answers(status: &str, headers: &[&str], body: &str) -> Deed {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    says(format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()))
}

/// Sends the pieces of a body one by one, and takes its time after each.
pub(crate) fn drips(status: &'static str, pieces: &'static [&'static str], time: Duration) -> Deed {
    Box::new(move |mut stream| {
        let asked = listen(&stream);
        write!(stream, "HTTP/1.1 {status}\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
        let mut send = |piece: &str| {
            let sent = write!(stream, "{:x}\r\n{piece}\r\n", piece.len());
            thread::sleep(time);
            sent
        };
        // Whoever asked may have seen enough.
        let _all_or_as_much_as_is_read = pieces.iter().chain(&[""]).try_for_each(|piece| send(piece));
        asked
    })
}

/// A proxy that says this to whoever wants a tunnel, and then answers in place of the host at its end.
pub(crate) fn tunnels(answer: &'static str, host: Deed) -> Deed {
    Box::new(move |mut stream| {
        let asked = listen(&stream);
        write!(stream, "HTTP/1.1 {answer}\r\n\r\n").unwrap();
        if answer.starts_with("200") {
            host(stream);
        }
        asked
    })
}

/// Resets the connection: what was sent is not read.
pub(crate) fn resets() -> Deed {
    Box::new(|stream| {
        let _the_first_byte_is_there = stream.peek(&mut [0]);
        Asked::default()
    })
}

/// Listens, and says nothing for so long, or until whoever asked has had enough.
pub(crate) fn hangs(time: Duration) -> Deed {
    Box::new(move |mut stream| {
        let asked = listen(&stream);
        stream.set_read_timeout(Some(time)).unwrap();
        let _nothing_more_comes = stream.read(&mut [0]);
        asked
    })
}

/// Sends a body of so many bytes, in pieces.
pub(crate) fn floods(bytes: usize) -> Deed {
    Box::new(move |mut stream| {
        let asked = listen(&stream);
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n").unwrap();
        let piece = vec![b'x'; 1 << 20];
        // Whoever asked may have seen enough.
        let _all_or_as_much_as_is_read = (0..bytes / piece.len()).try_for_each(|_| stream.write_all(&piece));
        asked
    })
}

fn listen(stream: &TcpStream) -> Asked {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if !head.is_empty() {
            line.make_ascii_lowercase();
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    Asked { head, body }
}
