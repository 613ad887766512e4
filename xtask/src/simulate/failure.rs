//! How services fail: each failure is what a command line prints, and the judge reads it by its own rules. What the simulation
//! knows of a failure beyond that, the callers never learn.

use std::collections::HashMap;

use unstuck_judge::nature::{self, Nature};
use unstuck_judge::retry::MayRepeat;
use unstuck_judge::{Call, Kind, Observation, Outcome, Rules, Verdict};

/// How a service fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// The connection broke on the way: nobody knows whether the call was carried out.
    Reset,
    /// Nothing listens.
    Refused,
    /// The server says that it cannot now.
    Unavailable,
    /// The server says that it failed.
    Internal,
    /// Too many calls, and in how many seconds there may be more, where the server says so.
    TooMany { after: Option<u64> },
    /// The caller's own limit ran out.
    TimedOut,
    /// The name cannot be found: a name server that stumbles, or a name that does not exist.
    NoSuchHost,
    /// There is nothing at this address.
    NotFound,
    /// The credentials are wrong.
    Unauthorised,
    /// It says nothing that anybody could read.
    Unexplained,
}

impl Failure {
    /// The exit code of `curl -f`, and what it prints.
    fn said(self) -> (i32, String) {
        let status = |code: u16, text: &str| {
            (22, format!("curl: (22) The requested URL returned error: {code} {text}"))
        };
        match self {
            Failure::Reset => (56, "curl: (56) Recv failure: Connection reset by peer".to_owned()),
            Failure::Refused => {
                (7, "curl: (7) Failed to connect to api.example port 443: Connection refused".to_owned())
            }
            Failure::Unavailable => status(503, "Service Unavailable"),
            Failure::Internal => status(500, "Internal Server Error"),
            Failure::TooMany { after: None } => status(429, "Too Many Requests"),
            Failure::TooMany { after: Some(seconds) } => {
                let (code, text) = status(429, "Too Many Requests");
                (code, format!("HTTP/1.1 429 Too Many Requests\nRetry-After: {seconds}\n\n{text}"))
            }
            Failure::TimedOut => (
                28,
                "curl: (28) Operation timed out after 10001 milliseconds with 0 bytes received".to_owned(),
            ),
            Failure::NoSuchHost => (6, "curl: (6) Could not resolve host: api.example".to_owned()),
            Failure::NotFound => status(404, "Not Found"),
            Failure::Unauthorised => status(401, "Unauthorized"),
            Failure::Unexplained => (120, "it did not work".to_owned()),
        }
    }
}

/// What the judge makes of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// The cause.
    pub kind: Kind,
    /// May the same call run again?
    pub may_repeat: MayRepeat,
}

/// Has failures read by the judge, each once.
pub struct Reader {
    rules: Rules,
    known: HashMap<(Failure, bool), Read>,
}

impl Reader {
    /// A reader by the built-in rules.
    pub fn new() -> Reader {
        Reader { rules: Rules::built_in(), known: HashMap::new() }
    }

    /// What the judge makes of a failure of a call that only looks, or of one that `writes`.
    pub fn read(&mut self, failure: Failure, writes: bool) -> Read {
        let rules = &self.rules;
        *self.known.entry((failure, writes)).or_insert_with(|| {
            let call = Call::shell(match writes {
                true => "curl -fsS -X POST https://api.example/v1/orders -d @order.json",
                false => "curl -fsS https://api.example/v1/orders",
            });
            let nature = nature::of(&call);
            assert_eq!(nature, if writes { Nature::Writes } else { Nature::ReadOnly }, "{call:?}");
            let (code, text) = failure.said();
            let observation = Observation {
                call,
                outcome: Outcome::Exited { code },
                http_status: None,
                stdout: Vec::new(),
                stderr: text.into_bytes(),
                merged: Vec::new(),
            };
            let diagnosis = rules.diagnose(&observation);
            let may_repeat = Verdict::of(&diagnosis, nature).may_repeat(&diagnosis);
            Read { kind: diagnosis.kind, may_repeat }
        })
    }
}
