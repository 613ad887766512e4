//! A link to a server that is a process of ours.

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use unstuck::CancellationToken;
use unstuck_exec::{Ending, Job, Stop};
use unstuck_judge::quote;
use unstuck_wire::mcp::{Framer, Piece};
use unstuck_wire::redact::redact;

use super::link::{Gone, Heard, Inbound, Link, Noise, Outbound};
use super::loads::Loads;
use super::outlet::{FITS, can_write};

/// How long a server whose input has ended may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// And how long once it is asked to. Clients that end us wait for two seconds before they kill us, and what is ours must be gone
/// by then.
const LAST_GRACE: Duration = Duration::from_millis(1500);
/// So many frames wait here when nobody takes them, if they are not too much together, and the server with them.
const UNDER_WAY: usize = 256;
/// Frames are written together as long as they are not more than this.
const TOGETHER: usize = 64 * 1024;
/// The longest line of what a server says to people.
const REMARK_MAX: usize = 8 * 1024;

/// How to start a server.
#[derive(Debug, Clone)]
pub(crate) struct ServerCommand {
    pub(crate) words: Vec<OsString>,
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// The longest frame that is taken from it.
    pub(crate) most: usize,
}

/// Starts a server.
pub(super) fn open(
    command: &ServerCommand,
    inbound: &Arc<Loads>,
    hurry: &CancellationToken,
) -> Result<(Link, u32), Gone> {
    let (program, rest) = match &command.words[..] {
        [program, rest @ ..] => (program.clone(), rest),
        [] => (OsString::new(), &[][..]),
    };
    let stop = Stop::new().map_err(|error| Gone { words: error.to_string(), code: None })?;
    let mut job = Job::new(&program, rest).grace(LAST_GRACE).stopped_by(&stop);
    for (name, value) in &command.variables {
        job = job.with_variable(name, value);
    }
    let (ended, ending) = oneshot::channel();
    let companion = job
        .companion(move |ending| {
            let _nobody_asks_any_more = ended.send(ending);
        })
        .map_err(|ending| gone(&ending, &program.to_string_lossy()))?;
    let pid = companion.pid;
    let opened = || {
        let stdin = pipe::Sender::from_owned_fd(OwnedFd::from(companion.stdin))?;
        let stdout = pipe::Receiver::from_owned_fd(OwnedFd::from(companion.stdout))?;
        let stderr = pipe::Receiver::from_owned_fd(OwnedFd::from(companion.stderr))?;
        Ok::<_, std::io::Error>((stdin, stdout, stderr))
    };
    let (stdin, stdout, stderr) = opened().map_err(|error| {
        stop.stop();
        Gone { words: error.to_string(), code: None }
    })?;
    let (to, outbound) = mpsc::unbounded_channel();
    let (tell, from) = mpsc::channel(UNDER_WAY);
    let name = program.to_string_lossy().into_owned();
    let over = CancellationToken::new();
    let remarks = tokio::spawn(read_remarks(stderr, tell.clone(), over.clone()));
    let link = Link { to, from, over: over.clone() };
    let (inbound, hurry) = (Arc::clone(inbound), hurry.clone());
    let watched = Watched { stop, ending, tell, name, remarks, over, inbound, hurry };
    tokio::spawn(watch(watched, stdout, command.most, stdin, outbound));
    Ok((link, pid))
}

/// What belongs to a server that runs.
struct Watched {
    stop: Stop,
    ending: oneshot::Receiver<Ending>,
    tell: mpsc::Sender<Heard>,
    name: String,
    /// What it says to people is being read.
    remarks: JoinHandle<()>,
    /// It has ended.
    over: CancellationToken,
    inbound: Arc<Loads>,
    /// There is no time for it to go by itself.
    hurry: CancellationToken,
}

/// Comes back when a server has ended and somebody else holds its output open: nothing of its own is left to be read.
async fn held_open(over: &CancellationToken) {
    over.cancelled().await;
    tokio::time::sleep(GRACE).await;
}

/// Stays with a server until it is gone, and tells of that last.
async fn watch(
    mut watched: Watched,
    stdout: pipe::Receiver,
    most: usize,
    stdin: pipe::Sender,
    outbound: mpsc::UnboundedReceiver<Outbound>,
) {
    let over = watched.over.clone();
    let inbound = Arc::clone(&watched.inbound);
    let mut reading = tokio::spawn(read_frames(stdout, most, watched.tell.clone(), over.clone(), inbound));
    let mut is_read = false;
    let mut writing = tokio::spawn(write_frames(stdin, outbound));
    let mut is_leaving = false;
    // What it closed by itself, and whether it was ended for that.
    let (mut closed, mut ended_for) = (None, None);
    let ending = loop {
        let leaving = async {
            match is_leaving {
                true => tokio::time::sleep(GRACE).await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            ending = &mut watched.ending => break ending.ok(),
            // Its output has ended, and a server that cannot answer is none. Most often it has just gone.
            _ = &mut reading, if !is_read => {
                (is_read, is_leaving) = (true, true);
                closed = Some("output");
            }
            // Nothing more is said to it, or it hears nothing more: it should go by itself.
            wrote = &mut writing, if !is_leaving => {
                is_leaving = true;
                closed = matches!(wrote, Ok(Wrote::NoMore)).then_some("input");
            }
            () = leaving => {
                ended_for = closed;
                watched.stop.stop();
                break (&mut watched.ending).await.ok();
            }
            () = watched.hurry.cancelled() => {
                watched.stop.stop();
                break (&mut watched.ending).await.ok();
            }
            () = watched.tell.closed() => {
                watched.stop.stop();
                break (&mut watched.ending).await.ok();
            }
        }
    };
    // What it said last is heard before its end is told, however slowly it is taken.
    over.cancel();
    if !is_read {
        drop(reading.await);
    }
    drop(watched.remarks.await);
    writing.abort();
    let lost = Ending::NotExecutable("it ended, and nobody saw how".to_owned());
    let mut gone = gone(&ending.unwrap_or(lost), &watched.name);
    if let Some(closed) = ended_for {
        gone.words = format!("the server closed its {closed} and was ended");
    }
    let _nobody_listens = watched.tell.send(Heard::Gone(gone)).await;
}

/// Why nothing more is written to a server.
enum Wrote {
    /// Nobody has anything more to say.
    All,
    /// It has closed its input, and what cannot be asked is no server.
    NoMore,
}

async fn write_frames(mut stdin: pipe::Sender, mut outbound: mpsc::UnboundedReceiver<Outbound>) -> Wrote {
    let mut together = Vec::new();
    // Each counts until it is written.
    let mut under_way = Vec::new();
    let mut next = None;
    loop {
        let Some(first) = (match next.take() {
            Some(next) => Some(next),
            None => outbound.recv().await,
        }) else {
            return Wrote::All;
        };
        // A large one is written as it is, so that nobody holds it twice.
        if first.frame.len() > TOGETHER {
            let written = async {
                stdin.write_all(&first.frame).await?;
                stdin.write_all(b"\n").await
            };
            if written.await.is_err() {
                return Wrote::NoMore;
            }
            continue;
        }
        next = Some(first);
        while let Some(small) = next.take_if(|next| together.len() + next.frame.len() <= TOGETHER) {
            together.extend_from_slice(&small.frame);
            together.push(b'\n');
            under_way.push(small);
            next = outbound.try_recv().ok();
        }
        if stdin.write_all(&together).await.is_err() {
            return Wrote::NoMore;
        }
        under_way.clear();
        together.clear();
    }
}

async fn read_frames(
    mut stdout: pipe::Receiver,
    most: usize,
    tell: mpsc::Sender<Heard>,
    over: CancellationToken,
    inbound: Arc<Loads>,
) {
    let mut framer = Framer::new(most);
    let mut growing = inbound.growing();
    let mut buffer = vec![0; 64 * 1024];
    let mut pieces = Vec::new();
    let mut is_over = false;
    while !is_over {
        tokio::select! {
            () = growing.room() => {}
            () = tell.closed() => return,
        }
        let read = tokio::select! {
            read = stdout.read(&mut buffer) => read.unwrap_or(0),
            () = held_open(&over) => 0,
        };
        match read {
            0 => {
                is_over = true;
                framer.finish(|piece| pieces.push(piece));
            }
            read => framer.feed(&buffer[..read], |piece| pieces.push(piece)),
        }
        growing.holds(framer.held());
        for piece in pieces.drain(..) {
            let heard = match piece {
                Piece::Frame(frame) => Heard::Frame(Inbound::counted(frame, &inbound)),
                Piece::TooLong(begins) => {
                    let begins = String::from_utf8_lossy(&begins).into_owned();
                    Heard::Noise { begins, why: Noise::TooLong { most } }
                }
                Piece::Within(glimpse) => Heard::Refused { glimpse, why: Noise::TooLong { most } },
            };
            if tell.send(heard).await.is_err() {
                return;
            }
        }
    }
}

/// What a server says to people goes to people, as far as they read it, and to whoever listens.
async fn read_remarks(mut stderr: pipe::Receiver, tell: mpsc::Sender<Heard>, over: CancellationToken) {
    let mut framer = Framer::new(REMARK_MAX);
    let mut buffer = vec![0; 8 * 1024];
    let mut lines = Vec::new();
    loop {
        let read = tokio::select! {
            read = stderr.read(&mut buffer) => read.unwrap_or(0),
            () = held_open(&over) => 0,
        };
        if read == 0 {
            break;
        }
        let shown = std::io::stderr();
        for part in buffer[..read].chunks(FITS) {
            if can_write(shown.as_fd()) {
                let _nobody_reads_it = shown.lock().write_all(part);
            }
        }
        framer.feed(&buffer[..read], |piece| lines.push(piece));
        for line in lines.drain(..) {
            let (Piece::Frame(line) | Piece::TooLong(line)) = line else { continue };
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if tell.send(Heard::Remark(line)).await.is_err() {
                return;
            }
        }
    }
}

fn gone(ending: &Ending, program: &str) -> Gone {
    let program = redact(program);
    let program = quote::bare(&program);
    let (words, code) = match ending {
        Ending::Exited(code) => (format!("the server exited with code {code}"), Some(*code)),
        Ending::Signalled(signal) => {
            (format!("the server was ended by signal {signal}"), Some(128 + *signal))
        }
        Ending::TimedOut => ("the server ran out of time".to_owned(), None),
        Ending::NotFound => (format!("{program}: command not found"), Some(127)),
        Ending::NotExecutable(why) | Ending::NotTried(why) => (format!("{program}: {why}"), Some(126)),
    };
    Gone { words, code }
}
