//! A command that works beside us.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc;
use std::time::Duration;

use unstuck_exec::{Companion, Ending, Job, Stop};

/// Long enough for a busy machine.
const SOON: Duration = Duration::from_secs(20);

fn start(script: &str, stop: &Stop) -> (Companion, mpsc::Receiver<Ending>) {
    let (tell, told) = mpsc::channel();
    let job = Job::new("sh", ["-c", script]).grace(Duration::from_millis(200)).stopped_by(stop);
    let companion =
        job.companion(move |ending| tell.send(ending).expect("the test waits")).expect("a shell starts");
    (companion, told)
}

#[test]
fn it_answers_until_its_input_ends() {
    let (mut companion, told) =
        start("while read line; do echo \"got $line\"; echo note >&2; done; exit 3", &Stop::new().unwrap());
    companion.stdin.write_all(b"one\ntwo\n").unwrap();
    let mut lines = BufReader::new(&mut companion.stdout).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "got one");
    assert_eq!(lines.next().unwrap().unwrap(), "got two");
    drop(companion.stdin);
    assert_eq!(told.recv_timeout(SOON).unwrap(), Ending::Exited(3));
    let mut notes = String::new();
    companion.stderr.read_to_string(&mut notes).unwrap();
    assert_eq!(notes, "note\nnote\n");
}

#[test]
fn it_is_stopped_with_all_that_it_started_however_deaf_it_is() {
    let stop = Stop::new().unwrap();
    let (companion, told) =
        start("trap '' TERM; (trap '' TERM; sleep 600) & echo ready; wait; sleep 600", &stop);
    let mut line = String::new();
    let mut output = BufReader::new(companion.stdout);
    output.read_line(&mut line).unwrap();
    stop.stop();
    assert_eq!(told.recv_timeout(SOON).unwrap(), Ending::Signalled(9));
    // Nobody is left who could hold the output open.
    assert_eq!(output.read_line(&mut line).unwrap(), 0);
}

#[test]
fn whom_it_leaves_behind_ends_with_it() {
    let (companion, told) = start("sleep 600 & exit 0", &Stop::new().unwrap());
    assert_eq!(told.recv_timeout(SOON).unwrap(), Ending::Exited(0));
    let mut rest = String::new();
    BufReader::new(companion.stdout).read_to_string(&mut rest).unwrap();
}

#[test]
fn one_that_cannot_be_started_says_so() {
    let check = |program: &str, expected: fn(&Ending) -> bool| {
        let none: [&str; 0] = [];
        let ending = Job::new(program, none).companion(|_| ()).unwrap_err();
        assert!(expected(&ending), "{program}: {ending:?}");
    };
    check("no-such-program-anywhere", |ending| *ending == Ending::NotFound);
    check("/etc/hostname", |ending| matches!(ending, Ending::NotExecutable(_)));
}
