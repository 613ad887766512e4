//! The names of causes and of the places they came from. Pure vocabulary: no judgement is made here.

/// Declares a closed vocabulary: a `Copy` enum whose variants have one fixed word each, in both directions.
#[macro_export]
macro_rules! vocabulary {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_meta])* $variant,)+ }

        impl $name {
            /// Every word of this vocabulary, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word as it stands in JSON, rule files and output.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result { f.pad(self.word()) }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::NotAWord;
            fn from_str(word: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|each| each.word() == word).ok_or($crate::NotAWord)
            }
        }
    };
}
pub(crate) use vocabulary;

/// The text is not a word of the vocabulary it was read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a word of this vocabulary")]
pub struct NotAWord;

vocabulary! {
    /// The cause of a failure. `Unknown` is an answer: it is never turned into another kind.
    Kind {
        /// DNS, refused, reset, unreachable, TLS trust, proxy, a tool server that hung up.
        Network = "network",
        /// An operation or the tool's own budget ran out of time.
        Timeout = "timeout",
        /// 429, throttling, secondary limits.
        RateLimited = "rate_limited",
        /// 5xx, overloaded, gateway pages.
        ServerError = "server_error",
        /// A lock is held, a port or a file is in use.
        ResourceBusy = "resource_busy",
        /// Missing, wrong or expired credentials.
        Auth = "auth",
        /// The operating system or a policy says no.
        Permission = "permission",
        /// The program, or the plugin behind a sub-command, does not exist here.
        CommandNotFound = "command_not_found",
        /// A file, directory, ref, URL or database does not exist.
        PathNotFound = "path_not_found",
        /// A module, library, header, package or tool version is not installed.
        MissingDependency = "missing_dependency",
        /// The code under work does not parse, compile, type-check or run.
        CodeError = "code_error",
        /// A test or an assertion failed.
        TestFailure = "test_failure",
        /// It claims success, and a check of what it did says otherwise.
        CheckFailed = "check_failed",
        /// The call itself is wrong: arguments, usage, schema, unknown tool.
        Validation = "validation",
        /// Something else is already there, or changed in the meantime.
        Conflict = "conflict",
        /// Disk, memory, descriptors, processes, a paid quota.
        OutOfResources = "out_of_resources",
        /// Data or a response is malformed.
        ParseError = "parse_error",
        /// Somebody stopped it.
        Aborted = "aborted",
        /// The program died of its own fault.
        Crash = "crash",
        /// An expected "no" of the program's own domain.
        Logical = "logical",
        /// Nothing is wrong, although a code or a word suggests it.
        NotAnError = "not_an_error",
        /// The evidence does not tell.
        Unknown = "unknown",
    }
}

vocabulary! {
    /// Where on its way a call failed.
    Stage {
        /// It never ran: bad arguments, unknown tool, denied.
        Rejected = "rejected",
        /// The tool threw instead of answering.
        Threw = "threw",
        /// The tool answered, and the answer says that it failed.
        Reported = "reported_failure",
        /// A process ended with a code or by a signal.
        Exited = "exited",
        /// It ran out of time.
        TimedOut = "timed_out",
        /// Somebody stopped it.
        Interrupted = "interrupted",
    }
}
