//! What may be kept and shown: nothing secret, nothing that acts or hides, nothing without bounds.

use proptest::prelude::*;
use serde_json::{Value, json};
use unstuck_wire::clean::{Clean, Cleaner};

const TOKEN_OF_ENVIRONMENT: &str = "Zk7/qP+4xW\"9vB2n";

fn cleaner() -> Cleaner {
    let environment = [
        ("DEPLOY_TOKEN", TOKEN_OF_ENVIRONMENT),
        ("DB_PASSWORD", "correct horse battery"),
        ("GIT_AUTHOR_NAME", "Ann Example"),
        ("SSH_AUTH_SOCK", "/run/user/1000/keyring/ssh"),
        ("MAX_TOKENS", "1234567890"),
        ("AUTH_TYPE", "kerberos"),
        ("SECRET_NAME", "production-database"),
        ("TOKEN_URL", "https://login.example/token"),
        ("API_KEY", "$OTHER_KEY"),
        ("PATH", "/usr/bin:/bin"),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Cleaner::new(Some("/home/ann"), environment)
}

/// What goes in, and what each of `line` and `text` makes of it.
#[track_caller]
fn check(text: &str, line: &str, several: &str) {
    let cleaner = cleaner();
    assert_eq!(*cleaner.line(text, 400), *line);
    assert_eq!(*cleaner.text(text, 400), *several);
}

#[track_caller]
fn check_same(text: &str) {
    check(text, text, text);
}

#[test]
fn sequences_for_terminals_are_dropped() {
    check("\u{1b}[1;31mred\u{1b}[0m", "red", "red");
    check(
        "\u{1b}]0;title\u{7}text \u{1b}]8;;https://x.example\u{1b}\\link\u{1b}]8;;\u{1b}\\",
        "text link",
        "text link",
    );
    check("\u{1b}(Bplain \u{1b}=\u{1b}7", "plain ", "plain ");
    check("a\u{9b}31mb", "ab", "ab");
    check("\u{1b}]0;never ended", "0;never ended", "0;never ended");
    check("\u{1b}[12;", "", "");
    check("cut \u{1b}", "cut \\x1b", "cut \\x1b");
}

#[test]
fn what_acts_or_hides_is_written_out() {
    check("a\0b\u{8}c\u{7f}", "a\\x00b\\x08c\\x7f", "a\\x00b\\x08c\\x7f");
    check("\u{202e}txt.exe\u{2066}", "\\u{202e}txt.exe\\u{2066}", "\\u{202e}txt.exe\\u{2066}");
    check("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}", "zero\\u{200b}width\\u{feff}");
    check("tag\u{e0041}", "tag\\u{e0041}", "tag\\u{e0041}");
    check("\u{85}\u{2028}", "\\u{85}\\u{2028}", "\\u{85}\\u{2028}");
    check_same("你好, für 日本 é 🎉");
}

#[test]
fn a_secret_in_wide_characters_is_found() {
    let wide: Vec<u8> = "password=hunter2 x".bytes().flat_map(|byte| [byte, 0]).collect();
    let clean = cleaner().output(&wide, 1000, 1000).head;
    assert!(clean.ends_with("\\x00=\\x00[redacted:password]\\x00 \\x00x\\x00"), "{clean}");
}

#[test]
fn lines_end_in_one_way() {
    check("a\r\nb\rc\n\td\n", "a b c  d", "a\nb\nc\n\td\n");
}

#[test]
fn the_home_folder_is_shortened_where_a_path_begins() {
    check("/home/ann/x", "~/x", "~/x");
    check("cd /home/ann && ls '/home/ann/a b'", "cd ~ && ls '~/a b'", "cd ~ && ls '~/a b'");
    check("PATH=/home/ann/bin:/home/ann/.cargo/bin", "PATH=~/bin:~/.cargo/bin", "PATH=~/bin:~/.cargo/bin");
    check("file:///home/ann/x -I/home/ann/include", "file://~/x -I~/include", "file://~/x -I~/include");
    check("it is in /home/ann.", "it is in ~.", "it is in ~.");
    check_same("/home/anna/x /mnt/home/ann/x /home/ann.bak /home/ann-old");
}

#[test]
fn values_of_secret_variables_are_cut_wherever_they_stand() {
    check("got Zk7/qP+4xW\"9vB2n!", "got [redacted:environment]!", "got [redacted:environment]!");
    check("x Zk7/qP+4xW\\\"9vB2n x", "x [redacted:environment] x", "x [redacted:environment] x");
    check("u=Zk7%2FqP%2B4xW%229vB2n.", "u=[redacted:environment].", "u=[redacted:environment].");
    check("the correct horse\n battery", "the [redacted:environment]", "the [redacted:environment]");
    for ordinary in
        ["Ann Example", "/run/user/1000/keyring/ssh", "1234567890", "kerberos", "production-database"]
    {
        check_same(ordinary);
    }
}

#[test]
fn a_line_and_a_text_are_bounded() {
    let cleaner = cleaner();
    assert_eq!(*cleaner.line("abcdef", 6), *"abcdef");
    assert_eq!(*cleaner.line("abcdefg", 6), *"abcde…");
    assert_eq!(*cleaner.line("abc", 0), *"");
    assert_eq!(*cleaner.text(&"ab\n".repeat(20), 25), *"ab\nab\nab\na\n[…]\n\nab\nab\nab\n");
    assert_eq!(*cleaner.line("PASSWORD=hunter2 and more", 20), *"PASSWORD=…");
    let long = "x ".repeat(5_000_000);
    assert_eq!(cleaner.text(&long, 100).chars().count(), 100);
    assert_eq!(cleaner.line(&long, 100).chars().count(), 100);
}

#[test]
fn names_that_were_changed_stay_different() {
    let cleaner = cleaner();
    let name = |name: &str| cleaner.name(name, 32).into_string();
    assert_eq!(name("session-1"), "session-1");
    assert_eq!(name("mcp__server__tool"), "mcp__server__tool");
    let all =
        [name("a\nb"), name("a\tb"), name("a b"), name(&"x".repeat(40)), name(&"x".repeat(41)), name("a\0b")];
    for (index, one) in all.iter().enumerate() {
        assert!(one.chars().count() <= 32, "{one}");
        assert_eq!(&name(one), one);
        assert!(!all[index + 1..].contains(one), "{one}");
    }
}

/// What JSON becomes.
#[track_caller]
fn check_json(value: Value, expected: &str) {
    assert_eq!(*cleaner().json(&value, 1000), *expected);
}

#[test]
fn json_is_cleaned_by_what_it_says_and_by_its_build() {
    check_json(json!({"a": 1, "b": [true, null, "x"]}), r#"{"a":1,"b":[true,null,"x"]}"#);
    check_json(json!({"password": "hunter2"}), r#"{"password":"[redacted:password]"}"#);
    check_json(json!({"password": 12345678}), r#"{"password":"[redacted:password]"}"#);
    check_json(json!({"max_tokens": 12345678}), r#"{"max_tokens":12345678}"#);
    check_json(
        json!({"name": "API_KEY", "value": "a1b2c3d4"}),
        r#"{"name":"API_KEY","value":"[redacted:token]"}"#,
    );
    check_json(json!(["tool", "--token", "a1b2c3d4", "x"]), r#"["tool","--token","[redacted:token]","x"]"#);
    check_json(json!(["mysql", "-phunter2"]), r#"["mysql","-p[redacted:password]"]"#);
    check_json(json!(["curl", "-u", "me:hunter2"]), r#"["curl","-u","me:[redacted:password]"]"#);
    check_json(
        json!({"command": "curl -H 'X-Api-Key: a1b2c3d4e5' https://x.example"}),
        r#"{"command":"curl -H 'X-Api-Key: [redacted:authorization]' https://x.example"}"#,
    );
    check_json(
        json!({"body": r#"{"clientSecret":"abcdefg","n":"{\"password\":\"hunter2\"}"}"#}),
        r#"{"body":"{\"clientSecret\":\"[redacted:password]\",\"n\":\"{\\\"password\\\":\\\"[redacted:password]\\\"}\"}"}"#,
    );
    check_json(json!({"\u{1b}[1mk\u{202e}": "/home/ann"}), r#"{"k\\u{202e}":"~"}"#);
    check_json(json!("one\ntwo"), r#""one\ntwo""#);
}

#[test]
fn long_json_is_cut_in_the_middle() {
    let clean = cleaner().json(&json!({"a": "x".repeat(10_000_000), "b": vec!["yy"; 1000]}), 60);
    assert_eq!(clean.chars().count(), 60, "{clean}");
    assert!(clean.contains("[…]"), "{clean}");
}

#[test]
fn an_output_keeps_its_ends() {
    let cleaner = cleaner();
    let whole = cleaner.output(b"short\n", 4, 4);
    assert_eq!((&*whole.head, &*whole.tail, whole.omitted), ("short\n", "", 0));
    let mut long = b"first\n".to_vec();
    long.extend(vec![b'.'; 10_000_000]);
    long.extend(b"\nlast\n");
    let ends = cleaner.output(&long, 8, 7);
    assert_eq!((&*ends.head, &*ends.tail, ends.omitted), ("first\n..", ".\nlast\n", 9_999_997));
    let binary = cleaner.output(&[0xff; 100], 10, 10);
    assert_eq!((&*binary.head, &*binary.tail), ("\\xff\\xff\\x", "ff\\xff\\xff"));
}

#[test]
fn words_of_our_own_are_clean() {
    const WORD: Clean = Clean::word("tool:start");
    assert_eq!(WORD.to_string(), "tool:start");
    assert_eq!(json!(WORD), json!("tool:start"));
    assert_eq!(Clean::stored("x".to_owned()).into_string(), "x");
}

/// Where a secret stands, and the secret. Put together here, so that no scanner takes this file for a leak.
fn secrets() -> Vec<(&'static str, String)> {
    let long = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5";
    let key = format!("MIIEpAIBAAKCAQEA{long}\n{long}{}\n{long}", &long[..9]);
    vec![
        ("push with {} failed", format!("ghp_{long}")),
        ("key {},", format!("sk-ant-api03-{long}-x_y")),
        ("slack {}", format!("xoxb-1234567890-1234567890-{long}")),
        ("id {} x", "AKIAIOSFODNN7EXAMPLE".to_owned()),
        ("jwt {} x", format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{long}")),
        ("curl -H 'Authorization: Bearer {}' x", format!("q7{long}")),
        ("curl -H 'X-Api-Key: {}' x", format!("k9{long}")),
        ("curl -H 'X-Custom-Token: {}' x", format!("k9{long}")),
        ("curl -H 'Cookie: sid={}; theme=dark' x", format!("c4{long}")),
        ("Set-Cookie: session={}; Path=/", format!("c4{long}")),
        ("{\"clientSecret\": \"{}\"}", format!("c5{long}")),
        ("{\"api_key\":\"{}\",\"x\":1}", format!("c6{long}")),
        ("API_KEY={} run", format!("c7{long}")),
        ("tool --token {} --verbose", format!("t8{long}")),
        ("PASSWORD='{}'", "S3cr3t-p4ssw0rd!".to_owned()),
        ("postgres://app:{}@db.example:5432/app", "S3cr3tp4ssw0rd".to_owned()),
        ("https://x.example/cb?state=1&access_token={}&x=1", format!("a9{long}")),
        ("https://x.example/blob?sv=1&sig={}", format!("s1{long}")),
        ("https://x.example/o?X-Amz-Signature={}&x=1", "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c".to_owned()),
        ("value {} of the environment", TOKEN_OF_ENVIRONMENT.to_owned()),
        ("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----", key),
    ]
}

/// How a secret is written.
#[derive(Debug, Clone, Copy)]
enum Form {
    Plain,
    /// Split over lines, with this between the parts.
    Split(&'static str),
    /// In base64, with the alphabet's last letters, in lines of this length.
    Base64(&'static str, usize),
    /// Inside the parameter of a URL.
    Percent,
    /// As a string in JSON, so many times.
    Json(usize),
}

const FORMS: [Form; 17] = [
    Form::Plain,
    Form::Split("\n"),
    Form::Split("\r\n"),
    Form::Split("\\\n"),
    Form::Split("\" \\\n    \""),
    Form::Split("\" +\n  \""),
    Form::Split("\\n"),
    Form::Split("\n        "),
    Form::Split("\r\n\t"),
    Form::Split("\u{200b}"),
    Form::Split("\u{1b}[0m"),
    Form::Base64("+/", 1000),
    Form::Base64("-_", 1000),
    Form::Base64("+/", 76),
    Form::Percent,
    Form::Json(1),
    Form::Json(3),
];

fn base64(text: &[u8], last: &str, width: usize) -> String {
    let letters: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(last.chars()).collect();
    let mut code = String::new();
    for group in text.chunks(3) {
        let bits = group.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte))
            << (8 * (3 - group.len()));
        for at in 0..4 {
            let letter = letters[bits >> (18 - 6 * at) & 63];
            code.push(if at <= group.len() { letter } else { '=' });
        }
    }
    let lines: Vec<&[u8]> = code.as_bytes().chunks(width).collect();
    lines.iter().map(|line| String::from_utf8_lossy(line)).collect::<Vec<_>>().join("\n")
}

fn percent(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte.is_ascii_alphanumeric() {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

impl Form {
    /// The text with the secret in it in this form, and pieces that must not come out.
    fn write(self, text: &str, secret: &str, split: usize) -> (String, Vec<String>) {
        let whole = text.replacen("{}", secret, 1);
        let pieces = |secret: &str, length: usize| -> Vec<String> {
            let signs: Vec<char> = secret.chars().filter(|sign| !sign.is_whitespace()).collect();
            signs.windows(length.min(signs.len())).map(String::from_iter).collect()
        };
        let at = 3 + split % (secret.len() - 6);
        match self {
            Form::Plain => (whole, pieces(secret, 8)),
            Form::Split(between) => {
                let split = format!("{}{between}{}", &secret[..at], &secret[at..]);
                (text.replacen("{}", &split, 1), pieces(secret, 8))
            }
            Form::Base64(last, width) => {
                let start = text.find("{}").expect("a text has a place for its secret") / 3 * 4 + 4;
                let code = base64(whole.as_bytes(), last, usize::MAX);
                let inside = &code[start..start + secret.len() / 3 * 4 - 4];
                (base64(whole.as_bytes(), last, width), pieces(inside, 12))
            }
            Form::Percent => {
                (format!("https://x.example/?next={}", percent(&whole)), pieces(&percent(secret), 14))
            }
            Form::Json(times) => {
                let json = (0..times).fold(whole, |text, _| Value::from(text).to_string());
                (json, pieces(secret, 8))
            }
        }
    }
}

/// Whatever a secret was cut into: the lines of what comes out are put together before it is looked for.
fn leak(clean: &str, pieces: &[String]) -> Option<String> {
    let joined: String = clean.chars().filter(|sign| !sign.is_whitespace()).collect();
    pieces.iter().find(|piece| joined.contains(piece.as_str())).cloned()
}

/// Ordinary lines around a secret.
fn surroundings() -> impl Strategy<Value = String> {
    let lines = prop::sample::select(vec![
        "   Compiling unstuck v0.1.0 (/home/ann/unstuck)",
        "error[E0425]: cannot find value `token` in this scope",
        "2026-01-02T03:04:05Z INFO request 550e8400-e29b-41d4-a716-446655440000 took 12ms",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "",
        "\u{1b}[32mok\u{1b}[0m 你好 \u{202e}",
        "{\"a\": [1, 2, {\"b\": \"c\"}]}",
        "$ cargo test --workspace && ls -la | grep foo",
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    ]);
    let line = prop_oneof![3 => lines.prop_map(str::to_owned), 1 => "[a-zA-Z0-9 .,_/-]{0,40}"];
    prop::collection::vec(line, 0..6).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn a_planted_secret_never_comes_out(
        which in 0..10_000_usize,
        form in prop::sample::select(FORMS.to_vec()),
        split in 0..10_000_usize,
        before in surroundings(),
        after in surroundings(),
        max in prop_oneof![20..400_usize, Just(4000)],
    ) {
        let secrets = secrets();
        let (text, secret) = &secrets[which % secrets.len()];
        let (written, pieces) = form.write(text, secret, split);
        let whole = format!("{before}\n{written}\n{after}");
        let cleaner = cleaner();
        let output = cleaner.output(whole.as_bytes(), max / 2, max / 2);
        let all = [
            cleaner.line(&whole, max),
            cleaner.name(&whole, max),
            cleaner.text(&whole, max),
            cleaner.json(&json!({"command": whole, "list": [whole]}), max),
            cleaner.json(&json!({&*whole: 1}), max),
            output.head,
            output.tail,
        ];
        for (way, clean) in all.iter().enumerate() {
            let leak = leak(clean, &pieces);
            prop_assert!(leak.is_none(), "{form:?} {way}: {leak:?} of {whole:?} in {clean:?}");
        }
    }

    #[test]
    fn a_secret_at_the_edge_of_what_is_kept_never_comes_out(
        which in 0..10_000_usize,
        edge in -120..120_isize,
        is_head in any::<bool>(),
    ) {
        let secrets = secrets();
        let (text, secret) = &secrets[which % secrets.len()];
        let (written, pieces) = Form::Plain.write(text, secret, 0);
        let filler = "an ordinary line of some length\n".repeat(600);
        let whole = format!("{filler}{written}\n{filler}");
        let middle = filler.len() + written.len() / 2;
        let at = middle.saturating_add_signed(edge);
        let cleaner = cleaner();
        let clean = match is_head {
            true => cleaner.output(whole.as_bytes(), at, 10).head,
            false => cleaner.output(whole.as_bytes(), 10, whole.len() - at).tail,
        };
        let leak = leak(&clean, &pieces);
        prop_assert!(leak.is_none(), "{leak:?}");
    }

    #[test]
    fn cleaning_twice_is_cleaning_once(
        which in 0..10_000_usize,
        form in prop::sample::select(FORMS.to_vec()),
        before in "(.|\\PC|\n){0,60}",
        after in surroundings(),
        max in 0..300_usize,
    ) {
        let secrets = secrets();
        let (text, secret) = &secrets[which % secrets.len()];
        let whole = format!("{before}{}{after}", form.write(text, secret, which).0);
        let cleaner = cleaner();
        let line = cleaner.line(&whole, max);
        prop_assert_eq!(cleaner.line(&line, max), line);
        let several = cleaner.text(&whole, max);
        prop_assert_eq!(cleaner.text(&several, max), several);
        let name = cleaner.name(&whole, max.max(9));
        prop_assert_eq!(cleaner.name(&name, max.max(9)), name);
    }

    #[test]
    fn what_comes_out_is_bounded_and_shows_everything(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        text in "(\\PC|.|[\u{200b}-\u{202e}]|\u{1b}\\[[0-9;]*m|\r|\t|\n){0,80}",
        max in 0..200_usize,
    ) {
        let cleaner = cleaner();
        let output = cleaner.output(&bytes, max, max / 2);
        let json = cleaner.json(&json!([text, {&*text: 1.5}]), max);
        let all = [
            (cleaner.line(&text, max), max, ""),
            (cleaner.name(&text, max.max(9)), max.max(9), ""),
            (cleaner.text(&text, max), max, "\n\t"),
            (json, max, ""),
            (output.head, max + max / 2, "\n\t"),
            (output.tail, max / 2, "\n\t"),
        ];
        for (clean, most, allowed) in all {
            prop_assert!(clean.chars().count() <= most, "{} > {most}: {clean:?}", clean.chars().count());
            let bad = clean.chars().find(|sign| {
                let is_bidi = matches!(sign, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
                (sign.is_control() || is_bidi) && !allowed.contains(*sign)
            });
            prop_assert!(bad.is_none(), "{bad:?} in {clean:?}");
        }
    }
}
