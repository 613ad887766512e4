//! Finds the name that somebody probably meant.

/// No name is longer than this; a longer word is only compared letter by letter.
const WORD_MAX: usize = 64;
/// Among more names nobody looks: a list like that is data and no vocabulary.
const NAMES_MAX: usize = 1_000;

/// How much one name is like another, the most alike first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likeness {
    /// The same but for case and separators: `filePath`, `file-path`, `file_path`.
    Spelling,
    /// So many letters are wrong, missing, too many or swapped.
    Typo(usize),
    /// One holds the words of the other: `path`, `file_path`.
    Part,
}

/// The name among many that is most like `word`, if one is. Of several alike the first counts.
pub(crate) fn near<'a>(word: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = Folded::of(word);
    let mut best: Option<(Likeness, &str)> = None;
    for name in among.into_iter().take(NAMES_MAX) {
        let Some(likeness) = word.likeness(&Folded::of(name)) else { continue };
        if best.is_none_or(|(best, _)| likeness < best) {
            best = Some((likeness, name));
        }
        if likeness == Likeness::Spelling {
            break;
        }
    }
    best.map(|(_, name)| name)
}

/// How much two names are alike, if they are.
pub(super) fn likeness(word: &str, name: &str) -> Option<Likeness> {
    Folded::of(word).likeness(&Folded::of(name))
}

/// A name without what people write differently.
struct Folded {
    letters: String,
    words: Vec<String>,
}

impl Folded {
    fn of(name: &str) -> Folded {
        if name.len() > WORD_MAX {
            return Folded { letters: name.to_owned(), words: Vec::new() };
        }
        let mut words = vec![String::new()];
        let mut was_lower = false;
        for sign in name.chars() {
            if matches!(sign, '_' | '-' | '.' | ' ' | '/' | ':') {
                words.push(String::new());
            } else {
                if sign.is_uppercase() && was_lower {
                    words.push(String::new());
                }
                if let Some(word) = words.last_mut() {
                    word.extend(sign.to_lowercase());
                }
            }
            was_lower = sign.is_lowercase();
        }
        words.retain(|word| !word.is_empty());
        Folded { letters: words.concat(), words }
    }

    fn likeness(&self, other: &Folded) -> Option<Likeness> {
        if self.letters == other.letters {
            return (!self.letters.is_empty()).then_some(Likeness::Spelling);
        }
        let is_long = |name: &Folded| name.letters.len() > WORD_MAX;
        if is_long(self) || is_long(other) {
            return None;
        }
        let (one, two) = (self.letters.chars().count(), other.letters.chars().count());
        // A short name becomes any other by a few changes.
        let most = (one.max(two) / 3).clamp(1, 3);
        if one.min(two) >= 2 && one.abs_diff(two) <= most {
            let wrong = strsim::damerau_levenshtein(&self.letters, &other.letters);
            if wrong <= most {
                return Some(Likeness::Typo(wrong));
            }
        }
        let holds = |whole: &Folded, part: &Folded| {
            !part.words.is_empty()
                && part.words.len() < whole.words.len()
                && part.words.iter().all(|word| word.len() >= 3 && whole.words.contains(word))
        };
        (holds(self, other) || holds(other, self)).then_some(Likeness::Part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, among: &[&str], expected: Option<&str>) {
        assert_eq!(near(word, among.iter().copied()), expected);
    }

    #[test]
    fn case_and_separators_do_not_count() {
        check("filePath", &["path", "file_path"], Some("file_path"));
        check("FS-READ", &["fs_red", "fs_read"], Some("fs_read"));
        check("FilePath", &["file.path"], Some("file.path"));
    }

    #[test]
    fn a_few_wrong_letters_are_a_slip_and_many_are_another_name() {
        check("pth", &["lines", "path"], Some("path"));
        check("paht", &["lines", "path"], Some("path"));
        check("encodnig", &["encoding", "decoding"], Some("encoding"));
        check("content", &["path", "lines"], None);
        check("a", &["b"], None);
        check("", &["", "a"], None);
    }

    #[test]
    fn a_name_may_hold_the_words_of_another() {
        check("path", &["lines", "file_path"], Some("file_path"));
        check("readFile", &["file"], Some("file"));
    }

    #[test]
    fn of_several_that_are_alike_the_first_counts() {
        check("pat", &["path", "part"], Some("path"));
    }

    #[test]
    fn long_words_and_long_lists_take_no_time() {
        let long = "x".repeat(10_000_000);
        check(&long, &["x", "path"], None);
        check(&long, &["path", &long.clone()], Some(&long));
        let many: Vec<String> = (0..100_000).map(|number| format!("field_{number}")).collect();
        assert_eq!(near("fild_7", many.iter().map(String::as_str)), Some("field_7"));
        // Only the first thousand are a vocabulary.
        let late = ["zzz"; 1_000].into_iter().chain(["path"]);
        assert_eq!(near("pth", late), None);
    }
}
