//! What a tool says when it could not do its work.

use std::error::Error;
use std::fmt::{self, Write as _};
use std::time::Duration;

use serde_json::Value;
use unstuck_judge::Lang;

/// What a tool says when it could not do its work.
///
/// An *expected* failure is an answer ("no such file"), an *unexpected* one is a fault ("the connection was reset"). Both
/// reach the model as data. `?` makes an unexpected failure of every `std::error::Error`, with its whole chain of causes; for
/// `anyhow::Error` and boxed errors, which are none, there is [`Failure::of`]. For the same reason it is no `Error` itself.
///
/// ```
/// use unstuck::Failure;
///
/// fn parse(text: &str) -> Result<u16, Failure> {
///     let port: u16 = text.parse()?;
///     if port < 1024 {
///         return Err(Failure::expected("ports below 1024 are reserved").recommend("use 8080"));
///     }
///     Ok(port)
/// }
///
/// assert_eq!(parse("80").unwrap_err().message(), "ports below 1024 are reserved");
/// assert_eq!(parse("x").unwrap_err().message(), "invalid digit found in string");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Failure(Box<Account>);

/// What a failure consists of. It is rare and large, so it travels as a pointer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Account {
    pub(crate) manner: Manner,
    /// What a rule reads, and what is said in English.
    pub(crate) message: String,
    /// The same in Chinese, where the tool has both.
    pub(crate) chinese: Option<String>,
    pub(crate) causes: Vec<String>,
    pub(crate) recommendations: Vec<Advice>,
    pub(crate) http_status: Option<u16>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) passes: bool,
    pub(crate) nothing_done: bool,
    pub(crate) may_have_acted: bool,
    pub(crate) not_again: bool,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) data: Option<Value>,
}

/// What a tool recommends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Advice {
    words: String,
    chinese: Option<String>,
}

impl Advice {
    /// The words of a language, or those that there are.
    pub(crate) fn in_language(self, lang: Lang) -> String {
        match (lang, self.chinese) {
            (Lang::Zh, Some(chinese)) => chinese,
            (Lang::En | Lang::Zh, _) => self.words,
        }
    }
}

/// How it came to the failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// The tool says so.
    Expected,
    /// Something threw.
    Unexpected,
    /// It panicked.
    Panicked,
    /// The arguments make no sense, although their shape is right.
    Invalid,
    /// A process ended with this code.
    Exited(i32),
    /// A process was ended by this signal.
    Signalled(i32),
    /// A time limit of the tool's own ran out.
    TimedOut,
    /// Somebody stopped it.
    Interrupted,
}

impl Failure {
    /// A failure that belongs to the tool's work: it is an answer.
    pub fn expected(message: impl Into<String>) -> Failure {
        Failure::new(Manner::Expected, message.into())
    }

    /// A failure that should not have happened. Any error becomes one by `?`.
    pub fn unexpected(message: impl Into<String>) -> Failure {
        Failure::new(Manner::Unexpected, message.into())
    }

    /// An unexpected failure of an error that hides its type: `work().map_err(Failure::of)?`.
    ///
    /// ```
    /// use unstuck::Failure;
    ///
    /// fn work() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    ///     Err("no room".into())
    /// }
    ///
    /// assert_eq!(work().map_err(Failure::of).unwrap_err().message(), "no room");
    /// ```
    pub fn of(error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        Failure::chained(&*error.into())
    }

    /// The arguments have the right shape and still make no sense.
    pub fn invalid(message: impl Into<String>) -> Failure {
        Failure::new(Manner::Invalid, message.into())
    }

    /// A process ended with an exit code that is not 0.
    pub fn exited(code: i32, stdout: impl Into<Vec<u8>>, stderr: impl Into<Vec<u8>>) -> Failure {
        Failure::new(Manner::Exited(code), format!("exit code {code}")).printed(stdout, stderr)
    }

    /// A process was ended by a signal.
    pub fn signalled(signal: i32, stdout: impl Into<Vec<u8>>, stderr: impl Into<Vec<u8>>) -> Failure {
        Failure::new(Manner::Signalled(signal), format!("ended by signal {signal}")).printed(stdout, stderr)
    }

    /// A time limit of the tool's own ran out.
    pub fn timed_out(message: impl Into<String>) -> Failure {
        Failure::new(Manner::TimedOut, message.into())
    }

    /// Somebody stopped it.
    pub fn interrupted(message: impl Into<String>) -> Failure {
        Failure::new(Manner::Interrupted, message.into())
    }

    /// It panicked, and said this.
    pub(crate) fn panicked(words: &str) -> Failure {
        Failure::new(Manner::Panicked, format!("the tool panicked: {words}"))
    }

    fn chained(error: &(dyn Error + '_)) -> Failure {
        let mut failure = Failure::unexpected(error.to_string());
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            // Many errors repeat in their own words what lies below.
            if !failure.0.message.contains(&text) {
                failure.0.causes.push(text);
            }
            source = cause.source();
        }
        failure
    }

    fn new(manner: Manner, message: String) -> Failure {
        Failure(Box::new(Account {
            manner,
            message,
            chinese: None,
            causes: Vec::new(),
            recommendations: Vec::new(),
            http_status: None,
            retry_after: None,
            passes: false,
            nothing_done: false,
            may_have_acted: false,
            not_again: false,
            stdout: Vec::new(),
            stderr: Vec::new(),
            data: None,
        }))
    }

    /// All of it.
    pub(crate) fn into_account(self) -> Account {
        *self.0
    }

    /// Adds advice for the model. It stands before what the rules recommend.
    #[must_use]
    pub fn recommend(mut self, advice: impl Into<String>) -> Failure {
        self.0.recommendations.push(Advice { words: advice.into(), chinese: None });
        self
    }

    /// The same in both languages.
    #[must_use]
    #[cfg(all(unix, feature = "tools"))]
    pub(crate) fn recommend_both(mut self, words: impl Into<String>, chinese: impl Into<String>) -> Failure {
        self.0.recommendations.push(Advice { words: words.into(), chinese: Some(chinese.into()) });
        self
    }

    /// What went wrong, in Chinese.
    #[must_use]
    #[cfg(all(unix, feature = "tools"))]
    pub(crate) fn in_chinese(mut self, message: impl Into<String>) -> Failure {
        self.0.chinese = Some(message.into());
        self
    }

    /// The status of the HTTP answer behind it.
    #[must_use]
    pub fn http_status(mut self, status: u16) -> Failure {
        self.0.http_status = Some(status);
        self
    }

    /// How long the other side asks to wait.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Failure {
        self.0.retry_after = Some(wait);
        self
    }

    /// It passes by itself, although nobody says when: the same call may work later.
    #[must_use]
    pub fn passes(mut self) -> Failure {
        self.0.passes = true;
        self
    }

    /// It is certain that nothing was done: the work was never begun, or undone. Even a tool that writes may be sent again then,
    /// where the cause passes by itself.
    #[must_use]
    pub fn nothing_done(mut self) -> Failure {
        self.0.nothing_done = true;
        self
    }

    /// The toolbox does not send it again by itself, whatever the cause: whoever asked is told at once, also when it may work.
    #[must_use]
    pub fn not_again(mut self) -> Failure {
        self.0.not_again = true;
        self
    }

    /// Whatever its words say, the work may have been done: they are no proof that it was not. A tool that writes is not sent
    /// again then.
    #[must_use]
    pub fn may_have_acted(mut self) -> Failure {
        self.0.may_have_acted = true;
        self
    }

    /// What was printed until then. The cause is looked for there rather than in the message.
    #[must_use]
    pub fn printed(mut self, stdout: impl Into<Vec<u8>>, stderr: impl Into<Vec<u8>>) -> Failure {
        (self.0.stdout, self.0.stderr) = (stdout.into(), stderr.into());
        self
    }

    /// What lies behind it, from near to far.
    #[must_use]
    pub fn because(mut self, cause: impl Into<String>) -> Failure {
        self.0.causes.push(cause.into());
        self
    }

    /// What the tool knows beside the message, as the model is to see it.
    #[must_use]
    pub fn data(mut self, data: Value) -> Failure {
        self.0.data = Some(data);
        self
    }

    /// What went wrong, in one line.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl Account {
    /// What went wrong, for a model.
    pub(crate) fn said(&self, lang: Lang) -> String {
        let chinese = self.chinese.as_ref().filter(|_| lang == Lang::Zh);
        chinese.unwrap_or(&self.message).clone()
    }

    /// The message with all causes below it.
    pub(crate) fn text(&self) -> String {
        let mut text = self.message.clone();
        for cause in &self.causes {
            // Writing to a string cannot fail.
            let _ = write!(text, "\ncaused by: {cause}");
        }
        text + &self.hint()
    }

    /// How long the other side asks to wait, as it would say so.
    pub(crate) fn hint(&self) -> String {
        let wait = self.retry_after.map(|wait| format!("\nRetry-After: {}", wait.as_secs_f64().ceil()));
        wait.unwrap_or_default()
    }
}

impl fmt::Display for Failure {
    /// The message; with `{:#}` all that lies behind it as well.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match f.alternate() {
            true => self.0.causes.iter().try_for_each(|cause| write!(f, ": {cause}")),
            false => Ok(()),
        }
    }
}

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::chained(&error)
    }
}
