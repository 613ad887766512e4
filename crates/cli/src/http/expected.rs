//! Which statuses count as a success.

use std::fmt;
use std::str::FromStr;

/// Statuses that are welcome, as a person writes them: `2xx`, `200,404`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected(Vec<Status>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Exactly(u16),
    /// All that begin with this digit.
    Class(u16),
}

impl Default for Expected {
    /// Any 2xx.
    fn default() -> Expected {
        Expected(vec![Status::Class(2)])
    }
}

impl Expected {
    pub(crate) fn allows(&self, status: u16) -> bool {
        self.0.iter().any(|welcome| match welcome {
            Status::Exactly(exactly) => *exactly == status,
            Status::Class(class) => *class == status / 100,
        })
    }
}

impl FromStr for Expected {
    type Err = String;

    fn from_str(text: &str) -> Result<Expected, String> {
        let wrong = || "statuses look like 2xx, 200 or 200,404".to_owned();
        let status = |word: &str| match word.trim().to_ascii_lowercase().strip_suffix("xx") {
            Some(class) => class.parse().ok().filter(|class| (1..=5).contains(class)).map(Status::Class),
            None => word.trim().parse().ok().filter(|one| (100..600).contains(one)).map(Status::Exactly),
        };
        text.split(',').map(|word| status(word).ok_or_else(wrong)).collect::<Result<_, _>>().map(Expected)
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, status) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match status {
                Status::Exactly(status) => write!(f, "{comma}{status}")?,
                Status::Class(class) => write!(f, "{comma}{class}xx")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_named_one_by_one_or_by_their_first_digit() {
        let check = |text: &str, status: u16, allowed: bool| {
            let expected: Expected = text.parse().unwrap();
            assert_eq!(expected.allows(status), allowed, "{text}: {status}");
            assert_eq!(expected.to_string().parse(), Ok(expected), "{text}");
        };
        check("2xx", 204, true);
        check("2XX", 301, false);
        check("200, 404", 404, true);
        check("200,404", 204, false);
        check("3xx,200", 302, true);
    }

    #[test]
    fn what_is_no_status_is_refused_with_examples() {
        for text in ["", "2x", "6xx", "ok", "200,", "99", "600", "xx", "200-299"] {
            assert!(text.parse::<Expected>().unwrap_err().contains("200,404"), "{text}");
        }
    }
}
