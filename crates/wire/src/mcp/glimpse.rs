//! What can be told of a message that is too long to be taken, from its beginning and from its end.

use super::framing::end_of_string;
use super::id::Id;

/// What is known of a message that is too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glimpse {
    /// What kind of message it is.
    pub sort: Sort,
    /// Its name; nothing where nobody can tell.
    pub id: Option<Id>,
}

/// What kind of message something is of which only a part is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// It asks or tells something.
    Question,
    /// It answers.
    Answer,
    /// It does not say.
    Unsaid,
}

impl Glimpse {
    /// What its beginning tells.
    pub fn of(begins: &[u8]) -> Glimpse {
        let fields = fields(begins);
        let sort = fields.iter().find_map(|(name, _)| match *name {
            b"method" | b"params" => Some(Sort::Question),
            b"result" | b"error" => Some(Sort::Answer),
            _ => None,
        });
        let id = fields.iter().find(|(name, _)| *name == b"id").and_then(|(_, rest)| Id::at_beginning(rest));
        Glimpse { sort: sort.unwrap_or(Sort::Unsaid), id }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_known_by_its_own_fields() {
        let check = |begins: &str, expected| {
            assert_eq!(Glimpse::of(begins.as_bytes()).sort, expected, "{begins}");
        };
        check(r#"{"jsonrpc":"2.0","method":"sampling/createMessage","params":{"a":"x"#, Sort::Question);
        check(r#"{"jsonrpc":"2.0","id":1,"params":{"a":"x"#, Sort::Question);
        check(r#"{ "params" : [["#, Sort::Question);
        check(r#"{"jsonrpc":"2.0","id":1,"result":{"method":"GET","params":"#, Sort::Answer);
        check(r#"{"error":{"params":1,"message":"x"#, Sort::Answer);
        check(r#"{"id":"method","result":"#, Sort::Answer);
        check(r#"{"\"method":1,"_meta":{"method":1},"result":"#, Sort::Answer);
        check(r#"[{"method":"a"},{"id":1,"result":"x"#, Sort::Unsaid);
        check(r#"{"id":"a\"#, Sort::Unsaid);
        check("", Sort::Unsaid);
    }
}
