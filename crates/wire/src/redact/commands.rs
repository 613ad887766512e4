//! Secrets that are known by the command they are given to: `redis-cli -a …`, `htpasswd -b file user …`, `echo … | sudo -S`.
//!
//! A command is looked at as it stands on its line, without a shell's grammar: this must stay fast, and in doubt the text
//! is an ordinary one.

use std::sync::LazyLock;

use memchr::memmem::{Finder, FinderRev};

use super::labels::{is_placeholder, is_prose, names_secret, value};
use super::reading::Text;
use super::{Find, is_random, run};

/// How far before an option its program is looked for, and how far behind a pipe its reader.
const COMMAND_LENGTH: usize = 400;

/// A program's option that takes a secret, and how.
struct SecretOption {
    /// The program, with its sub-commands; `*` at the end stands for the rest of its name.
    program: &'static str,
    /// The option as it is written.
    option: &'static str,
    written: Written,
    takes: Takes,
}

/// How an option and its value are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    /// In one word: `-pvalue`. As two, they mean something else.
    Glued,
    /// As two words: `-w value`.
    Apart,
    /// Either way, also behind `=`.
    Both,
    /// Either way, and the letter may stand at the end of others: `-su value`.
    Bundled,
}

/// What the value is.
#[derive(Clone, Copy)]
enum Takes {
    /// The secret.
    Value,
    /// A user, this sign, the secret.
    Behind(u8),
    /// This word, then the secret.
    After(&'static str),
}

use Takes::{After, Behind, Value};
use Written::{Apart, Both, Bundled, Glued};

const fn option(program: &'static str, option: &'static str, written: Written, takes: Takes) -> SecretOption {
    SecretOption { program, option, written, takes }
}

/// One row per option. The same letters mean other things elsewhere (`mkdir -p`), so the program has to stand before.
const OPTIONS: &[SecretOption] = &[
    option("mysql*", "-p", Glued, Value),
    option("mariadb*", "-p", Glued, Value),
    option("sshpass", "-p", Both, Value),
    option("docker login", "-p", Both, Value),
    option("podman login", "-p", Both, Value),
    option("helm registry login", "-p", Both, Value),
    option("oc login", "-p", Both, Value),
    option("az login", "-p", Both, Value),
    option("curl", "-u", Bundled, Behind(b':')),
    option("curl", "-U", Bundled, Behind(b':')),
    option("curl", "--user", Both, Behind(b':')),
    option("curl", "--proxy-user", Both, Behind(b':')),
    option("http", "-a", Both, Behind(b':')),
    option("https", "-a", Both, Behind(b':')),
    option("xh", "-a", Both, Behind(b':')),
    option("http", "--auth", Both, Behind(b':')),
    option("https", "--auth", Both, Behind(b':')),
    option("xh", "--auth", Both, Behind(b':')),
    option("curl", "-E", Both, Behind(b':')),
    option("curl", "--cert", Both, Behind(b':')),
    option("smbclient", "-U", Both, Behind(b'%')),
    option("smbclient", "--user", Both, Behind(b'%')),
    option("rpcclient", "-U", Both, Behind(b'%')),
    option("smbget", "-U", Both, Behind(b'%')),
    option("redis-cli", "-a", Apart, Value),
    option("redis-cli", "--pass", Apart, Value),
    option("valkey-cli", "-a", Apart, Value),
    option("valkey-cli", "--pass", Apart, Value),
    option("gh secret set", "-b", Both, Value),
    option("gh secret set", "--body", Both, Value),
    option("zip", "-P", Both, Value),
    option("unzip", "-P", Both, Value),
    option("7z", "-p", Glued, Value),
    option("7za", "-p", Glued, Value),
    option("7zz", "-p", Glued, Value),
    option("7zr", "-p", Glued, Value),
    option("rar", "-p", Glued, Value),
    option("rar", "-hp", Glued, Value),
    option("unrar", "-p", Glued, Value),
    option("ldap*", "-w", Both, Value),
    option("openssl", "-pass", Apart, After("pass:")),
    option("openssl", "-passin", Apart, After("pass:")),
    option("openssl", "-passout", Apart, After("pass:")),
    option("openssl", "-password", Apart, After("pass:")),
    option("openssl enc", "-k", Apart, Value),
    option("keytool", "-storepass", Apart, Value),
    option("keytool", "-keypass", Apart, Value),
    option("sqlcmd", "-P", Both, Value),
    option("mongo*", "-p", Both, Value),
    option("lftp", "-u", Both, Behind(b',')),
    option("ncftp*", "-p", Both, Value),
    option("twine upload", "-p", Both, Value),
    option("cqlsh", "-p", Both, Value),
    option("mosquitto*", "-P", Both, Value),
    option("nuget", "-k", Apart, Value),
    option("ssh-keygen", "-P", Apart, Value),
    option("ssh-keygen", "-N", Apart, Value),
    option("useradd", "-p", Both, Value),
    option("usermod", "-p", Both, Value),
    option("doctl", "-t", Apart, Value),
    option("hcloud", "-t", Apart, Value),
    option("ldappasswd", "-s", Apart, Value),
    option("ldappasswd", "-a", Apart, Value),
    option("ipmitool", "-P", Both, Value),
    option("snmp*", "-A", Apart, Value),
    option("snmp*", "-X", Apart, Value),
    option("bcp", "-P", Both, Value),
    option("isql", "-P", Both, Value),
    option("impala-shell", "-w", Apart, Value),
    option("vncviewer", "-passwd", Apart, Value),
    option("az keyvault secret set", "--value", Both, Value),
    option("aws secretsmanager", "--secret-string", Both, Value),
    option("aws ssm put-parameter", "--value", Both, Value),
    option("aws cognito-idp", "--password", Both, Value),
    option("restic", "--password-command", Both, After("echo ")),
    option("borg", "--passphrase", Both, Value),
    option("rclone", "--ftp-pass", Both, Value),
    option("consul acl", "-token", Both, Value),
    option("etcdctl", "--user", Both, Behind(b':')),
    option("influx*", "-t", Apart, Value),
    option("k6 login", "-t", Apart, Value),
    option("wget", "--http-password", Both, Value),
    option("wget", "--ftp-password", Both, Value),
];

/// A command one of whose words is a secret without an option before it.
struct SecretWord {
    /// The program, with its sub-commands.
    program: &'static str,
    which: Which,
}

#[derive(Clone, Copy)]
enum Which {
    /// The first word behind them, if it looks made by a machine.
    Token,
    /// The word behind one that names a secret.
    BehindName,
    /// The last word, if one of the flags has this letter.
    Last(u8),
}

const WORDS: &[SecretWord] = &[
    SecretWord { program: "aws configure set", which: Which::BehindName },
    SecretWord { program: "npm config set", which: Which::BehindName },
    SecretWord { program: "npm set", which: Which::BehindName },
    SecretWord { program: "yarn config set", which: Which::BehindName },
    SecretWord { program: "pnpm config set", which: Which::BehindName },
    SecretWord { program: "git config", which: Which::BehindName },
    SecretWord { program: "pulumi config set", which: Which::BehindName },
    SecretWord { program: "gcloud config set", which: Which::BehindName },
    SecretWord { program: "poetry config", which: Which::BehindName },
    SecretWord { program: "vault login", which: Which::Token },
    SecretWord { program: "htpasswd", which: Which::Last(b'b') },
];

/// Programs to which what they read is a secret: the words that must stand in the command, and what is read.
const READERS: &[(&str, &str, Takes)] = &[
    ("sudo", "-S", Value),
    ("chpasswd", "", Behind(b':')),
    ("passwd", "--stdin", Value),
    ("docker login", "--password-stdin", Value),
    ("podman login", "--password-stdin", Value),
    ("helm registry login", "--password-stdin", Value),
    ("gh auth login", "--with-token", Value),
    ("gh secret set", "", Value),
    ("cryptsetup", "", Value),
    ("kinit", "", Value),
    ("smbpasswd", "-s", Value),
    ("htpasswd", "-i", Value),
    ("gpg", "--passphrase-fd", Value),
];

/// Commands that are given a secret somewhere, sorted: a word of theirs that looks made by a machine is it.
const GIVEN_SECRETS: [&str; 110] = [
    " LOGIN ",
    "/oper ",
    "ATTACH ",
    "NickServ IDENTIFY",
    "ab -A",
    "ansible-vault encrypt_string",
    "bw login",
    "bw unlock",
    "cargo login",
    "certutil",
    "chamber write",
    "choco apikey",
    "choco push",
    "cloudflared service install",
    "codecov",
    "composer config",
    "conan remote login",
    "conan user",
    "consul acl",
    "crackmapexec",
    "create_superuser",
    "docker secret create",
    "doctl auth",
    "doppler secrets set",
    "dotnet user-secrets set",
    "drone ",
    "etcdctl",
    "evil-winrm",
    "expdp",
    "expect -c",
    "firebase functions:config:set",
    "fly secrets",
    "flyctl secrets",
    "freerdp",
    "gcloud secrets",
    "gem push",
    "gh auth",
    "gh secret",
    "gopass insert",
    "hatch publish",
    "heroku config:set",
    "htpasswd",
    "huggingface-cli login",
    "impdp",
    "infisical secrets",
    "influx",
    "isql",
    "jenkins-cli",
    "kubeadm join",
    "kubeseal",
    "ldapsearch",
    "lftp",
    "llm keys set",
    "mc alias set",
    "mc config host add",
    "mkpasswd",
    "mycli",
    "mysqladmin",
    "ncftp",
    "net use",
    "net user",
    "netlify env:set",
    "ngrok authtoken",
    "ngrok config add-authtoken",
    "nuget setapikey",
    "nxc ",
    "op item",
    "openssl passwd",
    "pass insert",
    "pgcli",
    "plink",
    "poetry config http-basic",
    "poetry config pypi-token",
    "pscp",
    "psexec",
    "psftp",
    "rabbitmqctl add_user",
    "rabbitmqctl authenticate_user",
    "rabbitmqctl change_password",
    "radius-server",
    "railway variables",
    "rclone obscure",
    "rman ",
    "runas",
    "secret-tool store",
    "security add-generic-password",
    "security import",
    "sendemail",
    "signtool",
    "skopeo",
    "smbclient",
    "snmp-server community",
    "snyk auth",
    "sqlldr",
    "sqlplus",
    "sudo rabbitmqctl",
    "supabase secrets set",
    "swaks",
    "tacacs-server",
    "travis encrypt",
    "turso auth",
    "vault kv put",
    "vault login",
    "vault operator unseal",
    "vault write",
    "vercel env add",
    "wandb login",
    "wpa_passphrase",
    "wrangler secret",
    "xcrun altool",
];

/// Whether the command that `line` ends in is given a secret.
pub(super) fn is_given_secret(line: &[u8]) -> bool {
    is_here_text(line) || is_login_option(line) || names_given_secret(line)
}

/// Whether one of the commands that are given secrets stands in a line, and nothing but its own words behind it.
fn names_given_secret(line: &[u8]) -> bool {
    let is_letter = |at: usize| line[at].is_ascii_alphanumeric();
    let mut begins = (0..line.len()).filter(|at| *at == 0 || !is_letter(*at) || !is_letter(*at - 1));
    begins.any(|at| {
        let rest = &line[at..];
        let first = GIVEN_SECRETS.partition_point(|command| command.as_bytes()[0] < rest[0]);
        let mut alike = GIVEN_SECRETS[first..].iter().take_while(|command| command.as_bytes()[0] == rest[0]);
        alike.any(|command| rest.strip_prefix(command.as_bytes()).is_some_and(is_one_command))
    })
}

/// `<<< value`, and `--password-file <(echo value)`: nothing else that looks made by a machine is given so.
fn is_here_text(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\"").or_else(|| line.strip_suffix(b"'")).unwrap_or(line).trim_ascii_end();
    line.ends_with(b"<<<") || line.ends_with(b"<(echo") || line.ends_with(b"<(printf %s")
}

/// `… login -u ada -p value`, whatever the program.
fn is_login_option(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\"").or_else(|| line.strip_suffix(b"'")).unwrap_or(line);
    let Some(line) = line.strip_suffix(b" ") else { return false };
    let is_option =
        [&b" -p"[..], b" -P", b" -pw", b" -t", b" -w"].iter().any(|option| line.ends_with(option));
    let mut words = line.split(|byte| *byte == b' ');
    is_option
        && words.any(|word| {
            let names: [&[u8]; 8] =
                [b"-u", b"-U", b"--user", b"--username", b"login", b"signin", b"auth", b"unlock-keychain"];
            names.contains(&word)
        })
}

pub(super) fn find(text: Text<'_>, finds: &mut Vec<Find>) {
    find_options(text, finds);
    find_words(text, finds);
    find_read(text, finds);
}

/// Options of programs that are known to take secrets, behind their program on its line.
fn find_options(text: Text<'_>, finds: &mut Vec<Find>) {
    static OPTION: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(" -"));
    let mut done = 0;
    for at in OPTION.find_iter(&text) {
        if at < done {
            continue;
        }
        let near = &text[at + 1..text.len().min(at + 24)];
        let mut line = None;
        let found = OPTIONS.iter().enumerate().find_map(|(number, row)| {
            let length = row.written_at(near)?;
            let line = *line.get_or_insert_with(|| text.line_before(at, COMMAND_LENGTH));
            let value_at = runs(line, number).then_some(at + 1 + length)?;
            let found = row.takes.value(text, value_at)?;
            (!text.is_wrapped(value_at)).then_some(found)
        });
        if let Some(found) = found {
            done = found.end;
            finds.push(found);
        }
    }
}

impl SecretOption {
    /// Where the value begins, if the option does where `near` does.
    fn written_at(&self, near: &[u8]) -> Option<usize> {
        let option = self.option.as_bytes();
        let length = match self.written {
            Bundled => {
                // Letters before this one are flags of their own.
                let letters = run(&near[1..], |byte| byte.is_ascii_alphabetic()).min(5);
                let at = near[1..=letters].iter().position(|letter| *letter == option[1])?;
                // Letters that take the rest of the word as their value.
                let valued = near[1..=at].iter().any(|letter| b"AbcCdDeEFHKmoPQrtTwxXyYz".contains(letter));
                (!valued).then_some(at + 2)?
            }
            Glued | Apart | Both => near.starts_with(option).then_some(option.len())?,
        };
        let next = *near.get(length)?;
        let is_long = option.starts_with(b"--");
        match (self.written, next) {
            (Glued, b' ' | b'=') => None,
            (Glued, _) => Some(length),
            (_, b' ') => Some(length + 1),
            (Both, b'=') => Some(length + 1),
            (Both | Bundled, _) if !is_long => Some(length),
            (Apart | Both | Bundled, _) => None,
        }
    }
}

impl Takes {
    /// The secret in the value that begins at `at`.
    fn value(self, text: Text<'_>, at: usize) -> Option<Find> {
        if text.is_wrapped(at) {
            return None;
        }
        let (start, end) = value(text, at)?;
        let start = match self {
            Value => start,
            // A token in the place of the user needs no password.
            Behind(sign)
                if text[start..end].ends_with(&[sign])
                    && is_random(&text[start..end])
                    && end - start > 12 =>
            {
                start
            }
            Behind(sign) => start + memchr::memchr(sign, &text[start..end])? + 1,
            After(word) => text[start..end].starts_with(word.as_bytes()).then_some(start + word.len())?,
        };
        let word = &text[start..end];
        let is_value =
            !word.is_empty() && !word.starts_with(b"-") && !is_placeholder(word) && !is_prose(word);
        is_value.then_some(Find { start, end, kind: "password" })
    }
}

/// The searches for the programs of [`OPTIONS`], prepared once, with whether the name may go on.
static PROGRAMS: LazyLock<Vec<(FinderRev<'static>, usize, bool)>> = LazyLock::new(|| {
    let program = |row: &SecretOption| {
        let name = row.program.trim_end_matches('*');
        (FinderRev::new(name), name.len(), name.len() < row.program.len())
    };
    OPTIONS.iter().map(program).collect()
});

/// Whether the command that `line` ends in is that of a row.
fn runs(line: &[u8], row: usize) -> bool {
    let (finder, length, goes_on) = &PROGRAMS[row];
    let is_word = |at: &usize| {
        let begins = line[..*at].last().is_none_or(|before| b" \t/;|&($`\"'=".contains(before));
        begins && (*goes_on || line.get(at + length).is_none_or(|after| b" \t\"'".contains(after)))
    };
    // Only the last one is looked at: behind an earlier one there is at least as much.
    finder.rfind_iter(line).find(is_word).is_some_and(|at| is_one_command(&line[at + length..]))
}

/// Whether no other command begins in what stands behind a program.
fn is_one_command(rest: &[u8]) -> bool {
    outside_quotes(rest).is_none()
}

/// The first sign that ends a command. In quotes a sign means nothing.
fn outside_quotes(rest: &[u8]) -> Option<usize> {
    let mut quote = None;
    rest.iter().position(|byte| {
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(*byte),
            (Some(open), byte) if open == *byte => quote = None,
            (None | Some(_), _) => {}
        }
        quote.is_none() && b"|;&".contains(byte)
    })
}

/// Commands whose secrets are words.
fn find_words(text: Text<'_>, finds: &mut Vec<Find>) {
    static FINDERS: LazyLock<Vec<Finder<'static>>> = LazyLock::new(|| {
        ["config", "npm set ", "vault login ", "htpasswd "].into_iter().map(Finder::new).collect()
    });
    for finder in FINDERS.iter() {
        for at in finder.find_iter(&text) {
            // The program may begin before what is searched for: `aws configure set`.
            let from = at.saturating_sub(8);
            let near = &text[from..text.len().min(at + 32)];
            let found = WORDS.iter().find_map(|row| {
                let begin = memchr::memmem::find(near, row.program.as_bytes())?;
                let is_word = near[..begin].last().is_none_or(|before| !before.is_ascii_alphanumeric());
                let end = from + begin + row.program.len();
                (is_word && text.get(end) == Some(&b' ')).then(|| row.which.value(text, end + 1))?
            });
            finds.extend(found);
        }
    }
}

impl Which {
    /// The secret among the words that begin at `at`.
    fn value(self, text: Text<'_>, at: usize) -> Option<Find> {
        match self {
            Which::Token => {
                let found = Value.value(text, skip_flags(text, at))?;
                let word = &text[found.start..found.end];
                (word.len() >= 8 && is_random(word)).then_some(Find { kind: "token", ..found })
            }
            Which::BehindName => {
                let at = skip_flags(text, at);
                let near = text.until(at + 128);
                let name = near.get(at..)?;
                let length = run(name, |byte| !byte.is_ascii_whitespace());
                let is_named = names_secret(&name[..length]) && name.get(length) == Some(&b' ');
                let found = Value.value(text, at + length + 1).filter(|_| is_named)?;
                (found.end - found.start >= 6).then_some(Find { kind: "token", ..found })
            }
            Which::Last(letter) => {
                let near = text.until(at + COMMAND_LENGTH);
                let line = &near[at..];
                let line = &line[..run(line, |byte| !b"\n\r|;&<>".contains(&byte))];
                let mut flags = line.split(|byte| *byte == b' ').filter(|word| word.first() == Some(&b'-'));
                if text.is_wrapped(at)
                    || !flags.any(|flag| !flag.starts_with(b"--") && flag.contains(&letter))
                {
                    return None;
                }
                let line = line.trim_ascii_end();
                // The last word may stand in quotes, with blanks.
                let start = match line.last()? {
                    quote @ (b'"' | b'\'') => memchr::memrchr(*quote, &line[..line.len() - 1])?,
                    _ => memchr::memrchr(b' ', line)? + 1,
                };
                Value.value(text, at + start)
            }
        }
    }
}

/// Where the first word at or behind `at` stands that is no flag.
fn skip_flags(text: Text<'_>, mut at: usize) -> usize {
    const MOST_FLAGS: usize = 4;
    for _ in 0..MOST_FLAGS {
        let Some(word) = text.get(at..).filter(|word| word.starts_with(b"-")) else { break };
        let word = &word[..word.len().min(80)];
        at += run(word, |byte| !byte.is_ascii_whitespace());
        at += usize::from(text.get(at) == Some(&b' '));
    }
    at
}

/// What is said into a pipe, or behind `<<<`, where the reader takes it for a secret.
fn find_read(text: Text<'_>, finds: &mut Vec<Find>) {
    static SAYING: LazyLock<[Finder<'static>; 2]> =
        LazyLock::new(|| [Finder::new("echo "), Finder::new("printf ")]);
    static GIVEN: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("<<<"));
    for finder in SAYING.iter() {
        let words = finder.find_iter(&text).map(|at| at + finder.needle().len());
        finds.extend(words.filter_map(|at| said(text, at)));
    }
    finds.extend(GIVEN.find_iter(&text).filter_map(|at| given(text, at)));
}

/// `echo value | reader`, from the value on.
fn said(text: Text<'_>, at: usize) -> Option<Find> {
    let near = &text[at..text.len().min(at + COMMAND_LENGTH)];
    let near = &near[..run(near, |byte| !b"\n\r".contains(&byte))];
    let pipe = outside_quotes(near)?;
    let reader = near[pipe..].strip_prefix(b"|")?;
    let reader = &reader[..run(reader, |byte| !b"|;&".contains(&byte))];
    let takes = reads(reader)?;
    let near = text.until(at + pipe);
    let mut start = skip_flags(near, at);
    // The format of `printf` says nothing; the value stands behind it.
    let (from, end) = value(near, start)?;
    if near[from..end].contains(&b'%') {
        let next = end + run(&near[end..], |byte| b"\"'".contains(&byte));
        start = if near.get(next) == Some(&b' ') { next + 1 } else { start };
    }
    takes.value(near, start).filter(|found| found.end - found.start >= 3)
}

/// `reader <<< value`.
fn given(text: Text<'_>, at: usize) -> Option<Find> {
    let line = text.line_before(at, COMMAND_LENGTH);
    let begin = line.iter().rposition(|byte| b"|;&".contains(byte)).map_or(0, |sign| sign + 1);
    let start = at + 3 + run(&text[at + 3..text.len().min(at + 11)], |byte| byte == b' ');
    reads(&line[begin..])?.value(text, start).filter(|found| found.end - found.start >= 3)
}

/// How a command takes what it reads, if that is a secret.
fn reads(command: &[u8]) -> Option<Takes> {
    let words = || command.split(|byte| byte.is_ascii_whitespace() || b"\"'()".contains(byte));
    let words = || words().filter(|word| !word.is_empty());
    READERS.iter().find_map(|(program, flag, takes)| {
        let mut names = program.split(' ');
        let first = names.next()?;
        let mut rest =
            words().skip_while(|word| word.rsplit(|byte| *byte == b'/').next() != Some(first.as_bytes()));
        rest.next()?;
        let is_program = names.all(|name| rest.next() == Some(name.as_bytes()));
        // `-Sk` holds `-S`.
        let is_flag = |word: &[u8]| match flag.strip_prefix("--") {
            Some(_) => word == flag.as_bytes(),
            None => {
                word.first() == Some(&b'-')
                    && word.get(1) != Some(&b'-')
                    && word.contains(&flag.as_bytes()[1])
            }
        };
        (is_program && (flag.is_empty() || words().any(is_flag))).then_some(*takes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_are_given_secrets_are_sorted() {
        assert!(GIVEN_SECRETS.is_sorted());
    }
}
