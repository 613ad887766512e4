//! The shapes of names that rules read from outputs. A name that has the shape its rule declares may stand in our own
//! sentences; anything else is quoted as data.

use crate::kind::vocabulary;

vocabulary! {
    /// The shape that a rule expects of what its group `it` reads.
    Shape {
        /// One name: `serde_json`, `@scope/pkg`, `openssl/ssl.h`.
        Name = "name",
        /// One word without a slash: a program, a crate, a package of the system.
        Word = "word",
        /// A path: `~/a/b.txt`, `C:\a`.
        Path = "path",
        /// A module, a class, a symbol: `std::io`, `node:fs`, `App\Models\User`.
        Module = "module",
        /// An option: `--all`, `-x`.
        Flag = "flag",
        /// A version, or a package with one: `1.2.3`, `left-pad@^9.0.0`.
        Version = "version",
        /// A port, a host, or both: `:::3000`, `db.local:5432`.
        Address = "address",
        /// Any text. It is always quoted as data.
        Text = "text",
    }
}

impl Shape {
    /// Tells whether `text` can be nothing but a name of this shape.
    pub fn fits(self, text: &str) -> bool {
        let (extra, most) = match self {
            Shape::Word => ("_.+-", 64),
            Shape::Name => ("@/._+-", 64),
            Shape::Path => ("@/._+~\\-:", 160),
            Shape::Module => ("@/._+-:\\#", 100),
            Shape::Flag => ("-_", 40),
            Shape::Version => ("@/._+-^~<>=*!", 64),
            Shape::Address => (".:[]-", 100),
            Shape::Text => return false,
        };
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || extra.as_bytes().contains(&byte);
        if text.is_empty() || text.len() > most || text.contains("//") || !text.bytes().all(is_allowed) {
            return false;
        }
        match self {
            Shape::Flag => {
                text.trim_start_matches('-').starts_with(|sign: char| sign.is_ascii_alphanumeric())
            }
            Shape::Version => !text.starts_with('-') && text.bytes().any(|byte| byte.is_ascii_digit()),
            // The colon of a drive, and no other.
            Shape::Path => {
                let is_drive = |at: usize| at == 1 && text[2..].starts_with(['/', '\\']);
                !text.starts_with('-') && text.match_indices(':').all(|(at, _)| is_drive(at))
            }
            Shape::Word | Shape::Name | Shape::Module | Shape::Address => !text.starts_with('-'),
            Shape::Text => false,
        }
    }

    /// Tells whether `text` may be filled into a command that somebody could run as it stands: one word, or several with a
    /// slash between them. No option, no address, no way out of a folder.
    pub fn fits_command(self, text: &str) -> bool {
        self.fits(text) && text.split('/').all(|part| Shape::Word.fits(part) && !part.starts_with('.'))
    }
}
