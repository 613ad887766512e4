//! Whether a word looks made by a machine.

use super::labels::is_prose;

/// Whether a word has no words in it: its stretches of one kind of letters are short, as chance makes them.
pub(super) fn is_random_word(word: &[u8]) -> bool {
    let letters = word.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let digits = word.iter().filter(|byte| byte.is_ascii_digit()).count();
    // Dates, versions, addresses and numbers have few letters; paths and file names have many separators.
    let separators = word.len() - letters - digits;
    if letters * 4 < word.len()
        || separators * 5 > word.len()
        || word.starts_with(b"/")
        || word.starts_with(b".")
    {
        return false;
    }
    if names_part(word) * 4 > word.len() || is_address(word) {
        return false;
    }
    let (mut stretches, mut numbers) = (1, 0);
    let mut before = kind_of(word[0]);
    for byte in &word[1..] {
        let kind = kind_of(*byte);
        if kind == Letter::Sign {
            continue;
        }
        let is_hump = before == Letter::Upper && kind == Letter::Lower;
        if kind != before && !is_hump {
            stretches += 1;
            numbers += usize::from(kind == Letter::Digit && before != Letter::Sign);
        }
        before = kind;
    }
    let length = letters + digits;
    let has = |test: fn(&u8) -> bool| word.iter().any(test);
    let is_both = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    if is_both && word.len() >= 16 && has_unspeakable(word) {
        return true;
    }
    if (is_both || digits > 0) && is_unlike_words(word) {
        return true;
    }
    match digits {
        0 => is_both && length >= 16 && stretches * 5 >= length * 2,
        _ => stretches * 34 >= length * 10 || numbers >= 3,
    }
}

/// How many letters of `word` belong to words between signs.
fn names_part(word: &[u8]) -> usize {
    let parts = word.split(|byte| !byte.is_ascii_alphanumeric());
    let is_name = |part: &&[u8]| {
        part.len() >= 3
            && part.len() < word.len()
            && part.iter().all(u8::is_ascii_alphabetic)
            && known_pairs(part).is_some_and(|(known, pairs)| known * 5 >= pairs * 4)
    };
    parts.filter(is_name).map(<[u8]>::len).sum()
}

/// Whether it is a place in memory.
pub(super) fn is_address(word: &[u8]) -> bool {
    word.len() <= 18
        && word.strip_prefix(b"0x").is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

/// Whether there are more consonants in a row than in any word.
fn has_unspeakable(word: &[u8]) -> bool {
    const MOST: usize = 7;
    let mut row = 0;
    word.iter().any(|byte| {
        let is_consonant = byte.is_ascii_alphabetic() && !b"aeiouyAEIOUY".contains(byte);
        row = if is_consonant { row + 1 } else { 0 };
        row >= MOST
    })
}

/// Letters of both cases and digits, as chance mixes them.
pub(super) fn is_mixed(word: &[u8]) -> bool {
    let has = |test: fn(&u8) -> bool| word.iter().any(test);
    has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_digit)
        && is_random_word(word)
}

/// Whether a word may well be made by chance: a long number, or letters of both cases and digits, and not only such
/// letters together as words have.
pub(super) fn is_likely(word: &[u8]) -> bool {
    const LEAST: usize = 16;
    const HEX_LENGTH: usize = 32;
    let has = |test: fn(&u8) -> bool| word.iter().any(test);
    let is_hex = word.len() >= HEX_LENGTH && word.iter().all(u8::is_ascii_hexdigit);
    if is_hex && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic) {
        return true;
    }
    word.len() >= LEAST
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && word.iter().all(u8::is_ascii_alphanumeric)
        && known_pairs(word).is_some_and(|(known, pairs)| known * 20 < pairs * 17)
}

/// Whether a value is the name of something else: a hash, a uuid, a name with a hash in it.
pub(super) fn is_hash(word: &[u8]) -> bool {
    let is_long = |part: &[u8]| part.len() >= 32 && part.iter().all(u8::is_ascii_hexdigit);
    word.split(|byte| !byte.is_ascii_alphanumeric()).any(is_long)
        || word.starts_with(b"sha")
        || word.starts_with(b"SHA")
        || is_uuid(word)
        || is_prose(word)
}

pub(super) fn is_uuid(word: &[u8]) -> bool {
    let mut parts = word
        .split(|byte| *byte == b'-')
        .map(|part| part.iter().all(u8::is_ascii_hexdigit).then_some(part.len()));
    [8, 4, 4, 4, 12].iter().all(|length| parts.next() == Some(Some(*length)))
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Letter {
    Lower,
    Upper,
    Digit,
    Sign,
}

fn kind_of(byte: u8) -> Letter {
    match byte {
        b'a'..=b'z' => Letter::Lower,
        b'A'..=b'Z' => Letter::Upper,
        b'0'..=b'9' => Letter::Digit,
        _ => Letter::Sign,
    }
}

/// Which letters follow one another in words of English and of programs: a row for each letter, a bit for each that follows.
const PAIRS: [u32; 26] = [
    0x01fe_bd6f,
    0x001e_4915,
    0x011e_dd9d,
    0x0016_493d,
    0x01ef_f97f,
    0x001e_4939,
    0x0016_69d1,
    0x001a_4111,
    0x02ae_fc7f,
    0x0000_0010,
    0x0004_0111,
    0x013c_c93d,
    0x001c_d91b,
    0x003e_ed7d,
    0x007e_fd6f,
    0x011e_c995,
    0x0010_0000,
    0x013e_fd7d,
    0x015f_fdbd,
    0x011e_d9bd,
    0x000e_f97f,
    0x0000_4111,
    0x0006_6191,
    0x0008_8114,
    0x000c_b800,
    0x0000_0010,
];

/// Whether many of its letters follow one another as they do in no word.
pub(super) fn is_unlike_words(word: &[u8]) -> bool {
    const FEWEST_PAIRS: usize = 6;
    known_pairs(word).is_some_and(|(known, pairs)| pairs >= FEWEST_PAIRS && known * 20 < pairs * 13)
}

/// How many letters follow one another as in words, and how many at all.
fn known_pairs(word: &[u8]) -> Option<(usize, usize)> {
    let row = |byte: u8| usize::from(byte.to_ascii_lowercase() - b'a');
    let (mut pairs, mut known) = (0, 0);
    for pair in word.windows(2).filter(|pair| pair.iter().all(u8::is_ascii_alphabetic)) {
        // Where a capital begins a word inside of a name, any letter may follow any other.
        if pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase() {
            continue;
        }
        pairs += 1;
        known += usize::from(PAIRS[row(pair[0])] >> row(pair[1]) & 1 == 1);
    }
    (pairs > 0).then_some((known, pairs))
}
