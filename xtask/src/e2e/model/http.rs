//! As much of HTTP as agents speak to their models: one request after another on a connection, bodies with a length or in
//! chunks, answers in one piece.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// No request of an agent is larger.
const LARGEST_BODY: usize = 64 << 20;

/// No scenario waits longer for an answer that does not come.
const SILENCE: Duration = Duration::from_secs(300);

/// What was asked.
#[derive(Debug)]
pub struct Request {
    /// In capitals.
    pub method: String,
    /// Without what follows a question mark.
    pub path: String,
    /// Null where there was none, or none that is JSON.
    pub body: Value,
}

/// What is answered.
#[derive(Debug)]
pub struct Response {
    status: &'static str,
    kind: &'static str,
    body: Vec<u8>,
    /// What else stands in its head.
    more: &'static str,
    /// How long it is held back.
    held: Duration,
}

impl Response {
    /// One JSON document.
    pub fn json(document: &Value) -> Response {
        Response::of("200 OK", "application/json", document.to_string().into_bytes())
    }

    /// Nobody scripted this.
    pub fn not_found() -> Response {
        let body = br#"{"error":{"type":"not_found_error","message":"not scripted"}}"#.to_vec();
        Response::of("404 Not Found", "application/json", body)
    }

    /// A refusal.
    pub fn refused(status: &'static str, document: &Value) -> Response {
        Response { status, ..Response::json(document) }
    }

    /// A refusal that says when to come back.
    pub fn limited(document: &Value) -> Response {
        Response { more: "Retry-After: 2\r\n", ..Response::refused(super::LIMITED, document) }
    }

    /// None, as long as anybody waits for it.
    pub fn silence() -> Response {
        Response { held: SILENCE, ..Response::not_found() }
    }

    fn of(status: &'static str, kind: &'static str, body: Vec<u8>) -> Response {
        Response { status, kind, body, more: "", held: Duration::ZERO }
    }

    /// A stream of events, each with a name or without.
    pub fn events<'a>(events: impl IntoIterator<Item = (Option<&'a str>, String)>) -> Response {
        let mut body = String::new();
        for (name, data) in events {
            if let Some(name) = name {
                body += &format!("event: {name}\n");
            }
            body += &format!("data: {data}\n\n");
        }
        Response::of("200 OK", "text/event-stream", body.into_bytes())
    }
}

/// Answers what comes over a connection until it ends.
pub fn serve(stream: &TcpStream, answer: impl Fn(&Request) -> Response) {
    // Small answers must not wait for each other: that would be 40 ms which no agent has in life.
    let _set = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    // A connection that breaks off is the agent's matter; the scenario sees it by what was not asked.
    while let Ok(Some(request)) = read(&mut reader) {
        let response = answer(&request);
        thread::sleep(response.held);
        if write(stream, &request, &response).is_err() {
            return;
        }
    }
}

fn write(mut stream: &TcpStream, request: &Request, response: &Response) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Request-Id: scripted\r\n\r\n",
        response.status,
        response.kind,
        response.body.len(),
        response.more
    );
    let mut bytes = head.into_bytes();
    if request.method != "HEAD" {
        bytes.extend_from_slice(&response.body);
    }
    stream.write_all(&bytes)
}

fn read(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let first = line(reader)?;
    let mut words = first.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(None) };
    let path = target.split('?').next().unwrap_or_default();
    let mut length = Length::Known(0);
    loop {
        let header = line(reader)?;
        let Some((name, value)) = header.split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = Length::Known(value.trim().parse().unwrap_or(0)),
            "transfer-encoding" => length = Length::Chunks,
            _ => {}
        }
    }
    let body = match length {
        Length::Known(length) => exactly(reader, length)?,
        Length::Chunks => chunks(reader)?,
    };
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Ok(Some(Request { method: method.to_owned(), path: path.to_owned(), body }))
}

enum Length {
    Known(usize),
    Chunks,
}

fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

fn exactly(reader: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    if length > LARGEST_BODY {
        return Err(io::Error::other("a body larger than any agent sends"));
    }
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = usize::from_str_radix(&line(reader)?, 16).map_err(io::Error::other)?;
        body.extend(exactly(reader, size)?);
        line(reader)?;
        if size == 0 {
            return Ok(body);
        }
    }
}
