//! What can be told of a message that is too long to be taken, from its beginning and from its end.

use super::framing::end_of_string;
use super::id::Id;

/// What is known of a message that is too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glimpse {
    /// Is it an answer?
    pub is_answer: bool,
    /// Its name; nothing where nobody can tell.
    pub id: Option<Id>,
}

impl Glimpse {
    /// What its beginning tells.
    pub fn of(begins: &[u8]) -> Glimpse {
        let fields = fields(begins);
        let has = |name: &str| fields.iter().any(|(field, _)| *field == name.as_bytes());
        let id =
            fields.iter().find(|(field, _)| *field == b"id").and_then(|(_, rest)| Id::at_beginning(rest));
        Glimpse { is_answer: !has("method") && (has("result") || has("error")), id }
    }

    /// What its end tells besides.
    #[must_use]
    pub fn with_end(self, ends: &[u8]) -> Glimpse {
        Glimpse { id: self.id.or_else(|| Id::in_end(ends)), ..self }
    }
}

/// The fields of a message as far as its beginning goes, each with all that follows its colon.
fn fields(begins: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut fields = Vec::new();
    let (mut depth, mut at, mut is_name) = (0_usize, 0, false);
    while let Some(sign) = begins.get(at) {
        match sign {
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => break,
            b'}' | b']' => depth -= 1,
            b'"' => {
                let end = end_of_string(begins, at + 1);
                let rest = begins.get(end + 1..).and_then(|rest| rest.trim_ascii_start().strip_prefix(b":"));
                if is_name
                    && depth == 1
                    && let Some(rest) = rest
                {
                    fields.push((&begins[at + 1..end], rest));
                }
                at = end;
            }
            _ => {}
        }
        // A name stands behind these alone.
        is_name = matches!(sign, b'{' | b',') || is_name && sign.is_ascii_whitespace();
        at += 1;
    }
    fields
}
