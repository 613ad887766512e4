//! Running a command where there are no process groups: one reading thread for each stream, and only the command itself
//! is ended when its time is over. Signals reach it from the console. It gets pipes, never a terminal of its own, and input that
//! is not typed counts as used.

use std::io::{self, IsTerminal, Read, Write};
use std::process::ExitStatus;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::companion::Companion;
use crate::job::{Audience, Ending, Job, Limit, Run, Stream, Undelivered};
use crate::stop::Stop;

/// How often the command is looked at while it prints nothing.
const LOOK: Duration = Duration::from_millis(20);

/// Chunks under way between a reader and the sink: enough to keep both busy, little enough to keep memory flat.
const UNDER_WAY: usize = 16;

/// Starts `job` as a companion. An error means that it was not started.
pub(crate) fn accompany(job: &Job, ended: impl FnOnce(Ending) + Send + 'static) -> io::Result<Companion> {
    let mut child = job.piped().spawn()?;
    let companion = Companion::of(&mut child)?;
    let (stop, grace) = (job.stop.clone(), job.grace);
    thread::spawn(move || {
        let mut kill_at = None;
        let ending = loop {
            match child.try_wait() {
                Ok(Some(status)) => break ending(status),
                Ok(None) => thread::sleep(LOOK),
                Err(error) => break Ending::NotExecutable(error.to_string()),
            }
            if stop.as_ref().is_some_and(Stop::is_stopped) {
                // Its input is closed by whoever stops it; there is nothing gentler here than that.
                let at = *kill_at.get_or_insert_with(|| Instant::now() + grace);
                if at <= Instant::now() {
                    let _it_may_have_ended = child.kill();
                }
            }
        };
        ended(ending);
    });
    Ok(companion)
}

/// Runs `job` to its end, and does `meanwhile` while it works. An error means that it was not started.
pub(crate) fn run(
    job: &Job,
    started: Instant,
    meanwhile: impl FnOnce(),
    mut sink: impl FnMut(Stream, &[u8]),
) -> io::Result<Run> {
    let mut child = job.command().spawn()?;
    job.feed(&mut child);
    let (sender, chunks) = mpsc::sync_channel::<(Stream, Vec<u8>)>(UNDER_WAY);
    // The readers are not joined: a process left behind may hold their pipe open for ever.
    if let Some(pipe) = child.stdout.take() {
        let sender = sender.clone();
        thread::spawn(move || read_all(Stream::Stdout, pipe, &sender));
    }
    if let Some(pipe) = child.stderr.take() {
        let sender = sender.clone();
        thread::spawn(move || read_all(Stream::Stderr, pipe, &sender));
    }
    drop(sender);
    meanwhile();

    let mut ended: Option<(ExitStatus, Instant)> = None;
    let mut timed_out = false;
    let mut stopped = false;
    let mut last = started;
    let mut undelivered = None;
    loop {
        match chunks.recv_timeout(LOOK) {
            Ok((stream, bytes)) => {
                last = Instant::now();
                sink(stream, &bytes);
                if let Err(error) = pass_on(job.audience, stream, &bytes) {
                    undelivered = undelivered.or_else(|| Undelivered::by(stream, &error));
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if ended.is_some() => break,
            Err(RecvTimeoutError::Disconnected) => thread::sleep(LOOK),
        }
        match ended {
            Some((_, at)) if at.elapsed() > job.linger => break,
            Some(_) => {}
            None => ended = child.try_wait()?.map(|status| (status, Instant::now())),
        }
        let is_over = |limit: Limit, since: Instant| match limit {
            Limit::None => false,
            Limit::After(limit) => since.elapsed() > limit,
        };
        if ended.is_none() && (is_over(job.limit, started) || is_over(job.idle, last)) {
            timed_out = true;
            // It may have ended in this moment.
            drop(child.kill());
        }
        if ended.is_none() && !timed_out && job.stop.as_ref().is_some_and(Stop::is_stopped) {
            stopped = true;
            drop(child.kill());
        }
    }
    let ending = match ended {
        _ if timed_out => Ending::TimedOut,
        Some((status, _)) => ending(status),
        None => Ending::NotExecutable("it ended, and nobody saw how".to_owned()),
    };
    let input_used = job.watches_input() && !io::stdin().is_terminal();
    Ok(Run { ending, took: started.elapsed(), input_used, asked_to_end: stopped, undelivered })
}

fn ending(status: ExitStatus) -> Ending {
    let unsaid = || Ending::NotExecutable("it ended without an exit code".to_owned());
    status.code().map_or_else(unsaid, Ending::Exited)
}

fn read_all(stream: Stream, mut pipe: impl Read, sender: &mpsc::SyncSender<(Stream, Vec<u8>)>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read) = pipe.read(&mut buffer) {
        if read == 0 || sender.send((stream, buffer[..read].to_vec())).is_err() {
            return;
        }
    }
}

/// Shows the user what the sink saw. A user who stopped listening does not stop the command here.
fn pass_on(audience: Audience, stream: Stream, bytes: &[u8]) -> io::Result<()> {
    match (audience, stream) {
        (Audience::SinkOnly | Audience::UserOnly, _) => Ok(()),
        (Audience::SinkAndUser, Stream::Stdout | Stream::Merged) => {
            let mut out = io::stdout().lock();
            out.write_all(bytes).and_then(|()| out.flush())
        }
        (Audience::SinkAndUser, Stream::Stderr) => io::stderr().write_all(bytes),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn run_sh(script: &str, limit: Limit) -> (Ending, Vec<u8>) {
        let mut job = Job::new("sh", ["-c", script]).capture_only();
        job.limit = limit;
        let mut seen = Vec::new();
        let run =
            run(&job, Instant::now(), || (), |_, bytes| seen.extend_from_slice(bytes)).expect("a shell");
        (run.ending, seen)
    }

    #[test]
    fn the_fallback_reports_code_and_output() {
        assert_eq!(run_sh("echo hello; exit 3", Limit::None), (Ending::Exited(3), b"hello\n".to_vec()));
    }

    #[test]
    fn the_fallback_is_not_held_by_a_process_left_behind() {
        let begun = Instant::now();
        assert_eq!(run_sh("sleep 9 & exit 0", Limit::None).0, Ending::Exited(0));
        assert!(begun.elapsed() < Duration::from_secs(3));
    }

    #[test]
    fn a_companion_of_the_fallback_answers_until_it_is_stopped() {
        let stop = Stop::new().expect("two descriptors");
        let job = Job::new("sh", ["-c", "read line; echo \"got $line\"; sleep 600"])
            .grace(Duration::from_millis(50))
            .stopped_by(&stop);
        let (tell, told) = mpsc::channel();
        let mut companion =
            accompany(&job, move |ending| tell.send(ending).expect("the test waits")).expect("a shell");
        companion.stdin.write_all(b"it\n").expect("it reads");
        let mut answer = [0; 7];
        companion.stdout.read_exact(&mut answer).expect("it answers");
        assert_eq!(&answer, b"got it\n");
        stop.stop();
        let ending = told.recv_timeout(Duration::from_secs(20)).expect("it ends");
        assert!(matches!(ending, Ending::NotExecutable(_)), "{ending:?}");
    }

    #[test]
    fn the_fallback_keeps_a_time_limit() {
        assert_eq!(run_sh("exec sleep 9", Limit::After(Duration::from_millis(100))).0, Ending::TimedOut);
    }
    #[test]
    fn the_fallback_heeds_a_stop() {
        let stop = Stop::new().expect("two descriptors");
        stop.stop();
        let job = Job::new("sleep", ["9"]).capture_only().stopped_by(&stop);
        let run = run(&job, Instant::now(), || (), |_, _| ()).expect("a program");
        assert!(run.asked_to_end && run.took < Duration::from_secs(3), "{run:?}");
    }
}
