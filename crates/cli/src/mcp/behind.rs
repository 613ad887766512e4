//! Agents that are behind tools: calls of these are long, dear, and go on in sessions of their own.

/// How often a call of an agent is sent again, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Agents(pub(crate) Vec<(String, u8)>);

impl Default for Agents {
    fn default() -> Agents {
        Agents(
            [("coder", 0), ("codex", 1), ("gemini", 1)]
                .map(|(name, retries)| (name.to_owned(), retries))
                .into(),
        )
    }
}

impl Agents {
    /// The agent that a tool stands for, where its name says so, and how often it is sent again.
    pub(super) fn behind(&self, tool: &str) -> Option<(&str, u8)> {
        let words: Vec<String> = words(tool);
        let named = self.0.iter().find(|(name, _)| words.contains(&name.to_ascii_lowercase()));
        named.map(|(name, retries)| (name.as_str(), *retries))
    }

    /// Lays a person's own word over it: `codex=2`.
    pub(crate) fn set(&mut self, name: &str, retries: u8) {
        self.0.retain(|(other, _)| other != name);
        self.0.push((name.to_owned(), retries));
    }
}

/// The words of a name, in small letters: `askGemini`, `ask_gemini` and `Ask Gemini` are the same.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for sign in name.chars() {
        let begins = !sign.is_ascii_alphanumeric() || was_small && sign.is_ascii_uppercase();
        if begins {
            words.push(String::new());
        }
        if let (true, Some(word)) = (sign.is_ascii_alphanumeric(), words.last_mut()) {
            word.push(sign.to_ascii_lowercase());
        }
        was_small = sign.is_ascii_lowercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_known_by_the_name_of_its_tool() {
        let check = |tool: &str, expected: Option<(&str, u8)>| {
            assert_eq!(Agents::default().behind(tool), expected, "{tool}");
        };
        check("codex", Some(("codex", 1)));
        check("codex-reply", Some(("codex", 1)));
        check("askGemini", Some(("gemini", 1)));
        check("run_Coder", Some(("coder", 0)));
        check("encoder", None);
        check("read_file", None);
    }
}
