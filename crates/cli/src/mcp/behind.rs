//! Agents that are behind tools: calls of these are long, dear, and go on in sessions of their own.

/// What is wise where nobody said otherwise.
const BUILT_IN: [(&str, u8); 3] = [("coder", 0), ("codex", 1), ("gemini", 1)];

/// How often a call of an agent is sent again, by its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Agents {
    /// What a person said, the last word at the end.
    said: Vec<(String, u8)>,
}

impl Agents {
    /// Notes a person's own word: `codex=2`.
    pub(crate) fn set(&mut self, name: &str, retries: u8) {
        self.said.push((name.to_ascii_lowercase(), retries));
    }

    /// How often a call is sent again at most, where the name of its tool says that it stands for an agent. `general` is what a person
    /// said of all tools: an agent that does things is never sent again more often because of it.
    pub(super) fn retries(&self, tool: &str, general: Option<u8>) -> Option<u8> {
        let words = words(tool);
        let is_meant = |name: &str| words.iter().any(|word| word == name);
        let said = self.said.iter().rev().find(|(name, _)| is_meant(name));
        let built_in = BUILT_IN.iter().find(|(name, _)| is_meant(name));
        match (said, built_in) {
            (Some((_, retries)), _) => Some(*retries),
            (None, Some((_, retries))) => Some(general.map_or(*retries, |general| general.min(*retries))),
            (None, None) => None,
        }
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
        let check = |tool: &str, expected: Option<u8>| {
            assert_eq!(Agents::default().retries(tool, None), expected, "{tool}");
        };
        check("codex", Some(1));
        check("codex-reply", Some(1));
        check("askGemini", Some(1));
        check("run_Coder", Some(0));
        check("encoder", None);
        check("read_file", None);
    }

    #[test]
    fn a_word_about_an_agent_goes_before_what_is_wise_and_one_about_all_tools_only_makes_it_less() {
        let check = |said: &[(&str, u8)], general: Option<u8>, tool: &str, expected: Option<u8>| {
            let mut agents = Agents::default();
            said.iter().for_each(|(name, retries)| agents.set(name, *retries));
            assert_eq!(agents.retries(tool, general), expected, "{said:?} {general:?} {tool}");
        };
        check(&[], Some(5), "coder", Some(0));
        check(&[], Some(5), "codex", Some(1));
        check(&[], Some(0), "codex", Some(0));
        check(&[], Some(5), "read_file", None);
        check(&[("codex", 3)], Some(5), "codex", Some(3));
        check(&[("codex", 3)], Some(0), "codex", Some(3));
        check(&[("Codex", 3)], None, "codex", Some(3));
        check(&[("codex", 3), ("codex", 0)], None, "codex", Some(0));
        check(&[("reply", 2)], None, "codex-reply", Some(2));
        check(&[("amp", 2)], Some(0), "ask_amp", Some(2));
    }
}
