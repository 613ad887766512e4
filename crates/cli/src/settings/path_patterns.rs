//! Patterns of paths as one line of text: `none`, or `**/.env, ~/secrets/**`.

use std::fmt;
use std::path::Path;

use glob::Pattern;

/// Patterns of absolute paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PathPatterns(pub(crate) Vec<String>);

impl PathPatterns {
    /// Reads a list as a person writes it. Nothing comes back where one of them is no pattern or could fit no absolute path: it
    /// would let its writer believe that a secret is left out.
    pub(crate) fn read(text: &str, home: Option<&Path>) -> Option<PathPatterns> {
        if text.trim() == "none" {
            return Some(PathPatterns::default());
        }
        text.split(',').map(|pattern| absolute(pattern.trim(), home)).collect::<Option<_>>().map(PathPatterns)
    }
}

fn absolute(pattern: &str, home: Option<&Path>) -> Option<String> {
    let pattern = match pattern.strip_prefix("~/") {
        Some(rest) => format!("{}/{rest}", Pattern::escape(home?.to_str()?)),
        None => pattern.to_owned(),
    };
    let can_fit = pattern.starts_with('/') || pattern.starts_with("**/");
    (can_fit && Pattern::new(&pattern).is_ok()).then_some(pattern)
}

impl fmt::Display for PathPatterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.is_empty() {
            true => f.pad("none"),
            false => f.pad(&self.0.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_begins_where_an_absolute_path_can() {
        for (text, shown) in [
            ("none", Some("none")),
            ("**/.env", Some("**/.env")),
            (" /srv/keys/** ,~/secrets/*.pem", Some("/srv/keys/**, /home/ada/secrets/*.pem")),
            ("", None),
            (".env", None),
            ("**/.env,", None),
            ("secrets/**", None),
            ("**/[", None),
            ("**/a**", None),
        ] {
            let read = PathPatterns::read(text, Some(Path::new("/home/ada")));
            assert_eq!(read.map(|patterns| patterns.to_string()).as_deref(), shown, "{text:?}");
        }
        assert_eq!(PathPatterns::read("~/secrets", None), None);
    }
}
