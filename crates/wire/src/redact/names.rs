//! What a name or a word says about the value behind it.

/// How much a word says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The value is secret, and of this kind.
    Secret(&'static str),
    /// It is if it is like nothing else.
    Perhaps(&'static str),
}

use super::labels::is_secret_variable;
use Meaning::{Perhaps, Secret};

/// How a name ends that says something. Compared in lower case, with `-` and `.` as `_`.
const ENDINGS: &[(&str, Meaning)] = &[
    ("password", Secret("password")),
    ("passwd", Secret("password")),
    ("passwort", Secret("password")),
    ("kennwort", Secret("password")),
    ("passphrase", Secret("password")),
    ("passcode", Secret("password")),
    ("contrasena", Secret("password")),
    ("motdepasse", Secret("password")),
    ("senha", Secret("password")),
    ("wachtwoord", Secret("password")),
    ("parola", Secret("password")),
    ("haslo", Secret("password")),
    ("requirepass", Secret("password")),
    ("masterauth", Secret("password")),
    ("secret", Secret("password")),
    ("secrets", Secret("password")),
    ("token", Secret("token")),
    ("apikey", Secret("token")),
    ("api_key", Secret("token")),
    ("accesskey", Secret("token")),
    ("access_key", Secret("token")),
    ("secretkey", Secret("token")),
    ("secret_key", Secret("token")),
    ("privatekey", Secret("token")),
    ("private_key", Secret("token")),
    ("sharedkey", Secret("token")),
    ("preshared_key", Secret("token")),
    ("accountkey", Secret("token")),
    ("signing_key", Secret("token")),
    ("encryption_key", Secret("token")),
    ("auth_key", Secret("token")),
    ("authkey", Secret("token")),
    ("subscription_key", Secret("token")),
    ("jwt", Secret("token")),
    ("bearer", Secret("token")),
    ("otp", Secret("password")),
    ("bindpw", Secret("password")),
    ("rootpw", Secret("password")),
    ("credential", Secret("token")),
    ("credentials", Secret("token")),
    ("cookie", Secret("cookie")),
    ("cookies", Secret("cookie")),
    ("sessionid", Secret("cookie")),
    ("session_id", Perhaps("cookie")),
    ("sessid", Secret("cookie")),
    ("connectionstring", Secret("password")),
    ("connection_string", Secret("password")),
    ("recovery_code", Secret("token")),
    ("mfa_code", Secret("token")),
    ("access_code", Secret("token")),
    ("pin_code", Secret("password")),
    ("unseal", Secret("token")),
    ("securestring", Secret("password")),
    ("secretstring", Secret("password")),
    ("secretstr", Secret("password")),
    ("passwords", Secret("password")),
    ("tokens", Perhaps("token")),
    ("sshpass", Secret("password")),
    ("shared_key", Secret("token")),
    ("verifier", Perhaps("token")),
    ("assertion", Perhaps("token")),
    ("samlresponse", Perhaps("token")),
    ("phrase", Perhaps("password")),
    ("secret_id", Perhaps("token")),
    ("sonar_login", Secret("token")),
    ("clave", Secret("password")),
    ("mot_de_passe", Secret("password")),
    ("heslo", Secret("password")),
    ("salasana", Secret("password")),
    ("adgangskode", Secret("password")),
    ("sandi", Secret("password")),
    ("geheimnis", Secret("password")),
    ("zugangsdaten", Secret("password")),
    ("jeton", Perhaps("token")),
    ("chave", Secret("token")),
    ("auth_ident", Secret("password")),
    ("authident", Secret("password")),
    ("github_oauth", Secret("token")),
    ("gitlab_oauth", Secret("token")),
    ("totp", Secret("password")),
    ("pincode", Secret("password")),
    ("skey", Perhaps("token")),
    ("spend_key", Secret("token")),
    ("api_keys", Secret("token")),
    ("access_keys", Secret("token")),
    ("encrypt", Perhaps("token")),
];

/// Whole names that say something.
const WHOLE: &[(&str, Meaning)] = &[
    ("pass", Secret("password")),
    ("pwd", Secret("password")),
    ("pw", Secret("password")),
    ("pin", Perhaps("password")),
    ("psk", Secret("password")),
    ("auth", Perhaps("token")),
    ("sid", Perhaps("cookie")),
    ("session", Perhaps("cookie")),
    ("key", Perhaps("token")),
    ("signature", Perhaps("token")),
    ("code", Perhaps("token")),
    ("storepass", Secret("password")),
    ("keypass", Secret("password")),
    ("userpass", Secret("password")),
    ("authorization", Secret("authorization")),
    ("identified", Secret("password")),
    ("sk", Perhaps("token")),
    ("sas", Perhaps("token")),
    ("mfa", Perhaps("token")),
];

/// Last words of a name that say something behind others (`db_pwd`, `DB_PASS`, `SharedKey`).
const LAST_WORDS: &[(&str, Meaning)] = &[
    ("pass", Secret("password")),
    ("pwd", Secret("password")),
    ("pw", Secret("password")),
    ("psk", Secret("password")),
    ("pat", Perhaps("token")),
    ("auth", Perhaps("token")),
    ("key", Perhaps("token")),
    ("session", Perhaps("cookie")),
    ("code", Perhaps("token")),
];

/// Ends of names that say something only before [`FILLERS`]: `client-key-data`.
const KEYS: &[(&str, Meaning)] = &[("_key", Perhaps("token"))];

/// Ends of names that say nothing themselves: `password_confirmation`, `secretValue`.
const FILLERS: &[&str] = &[
    "value",
    "string",
    "text",
    "plain",
    "confirmation",
    "confirm",
    "again",
    "data",
    "content",
    "input",
    "pem",
];

/// Words before `key` and `code` with which they say more.
const SECRET_KINDS: &[&str] = &[
    "api",
    "access",
    "secret",
    "private",
    "signing",
    "encryption",
    "auth",
    "license",
    "licence",
    "master",
    "admin",
    "deploy",
    "service",
    "account",
    "shared",
    "recovery",
    "spend",
    "verification",
    "session",
    "security",
    "host",
    "storage",
];

/// Names that end like those of secrets and are none.
const PUBLIC: &[&str] = &[
    "public",
    "pub",
    "primary",
    "foreign",
    "sort",
    "cache",
    "partition",
    "index",
    "unique",
    "object",
    "idempotency",
    "next",
    "page",
    "continuation",
    "max",
    "num",
    "total",
    "unexpected",
    "expected",
    "end",
    "eos",
    "bos",
    "pad",
    "translation",
    "host",
    "restore",
    "routing",
    "ssh",
    "sec",
    "existing",
];

/// Words that stand between a label and its value, and in front of values.
const JOINTS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
    "7",
    "8",
    "9",
    "is",
    "was",
    "are",
    "as",
    "to",
    "be",
    "by",
    "with",
    "for",
    "of",
    "the",
    "a",
    "an",
    "new",
    "your",
    "my",
    "now",
    "set",
    "value",
    "values",
    "val",
    "text",
    "string",
    "str",
    "content",
    "contents",
    "data",
    "default",
    "input",
    "answer",
    "changed",
    "provided",
    "using",
    "used",
    "following",
    "current",
    "temporary",
    "initial",
    "type",
    "ref",
    "name",
    "defaultvalue",
    "plain",
    "base64",
    "b64",
    "b",
    "r",
    "u",
    "f",
    "x",
    "ist",
    "lautet",
    "est",
    "es",
    "vault",
    "const",
    "let",
    "var",
    "return",
    "key",
    "field",
    "target",
    "fill",
    "element",
    "label",
    "basic",
    "digest",
    "apikey",
    "arg",
    "env",
    "raw",
    "literal",
    "response",
    "result",
    "has",
    "been",
    "created",
    "generated",
    "issued",
    "updated",
    "reset",
    "s",
    "n",
    "says",
    "equals",
    "eq",
    "some",
    "len",
    "echo",
    "protected",
    "private",
    "static",
    "mut",
    "final",
    "char",
    "nvarchar",
    "varchar",
    "tobe",
    "toequal",
    "tostrictequal",
    "sha1",
    "sha256",
    "sha512",
    "de",
    "api",
];

/// Labels in scripts without spaces or capitals, and words of Latin script that are not ASCII.
const OTHER_SCRIPTS: &[(&str, Meaning)] = &[
    ("密码", Secret("password")),
    ("密碼", Secret("password")),
    ("口令", Secret("password")),
    ("令牌", Secret("token")),
    ("权杖", Secret("token")),
    ("權杖", Secret("token")),
    ("密钥", Secret("token")),
    ("密鑰", Secret("token")),
    ("秘钥", Secret("token")),
    ("私钥", Secret("token")),
    ("金鑰", Secret("token")),
    ("授权码", Secret("token")),
    ("驗證碼", Secret("token")),
    ("验证码", Secret("token")),
    ("通行证", Secret("token")),
    ("凭证", Secret("token")),
    ("凭据", Secret("token")),
    ("パスワード", Secret("password")),
    ("暗証番号", Secret("password")),
    ("トークン", Secret("token")),
    ("비밀번호", Secret("password")),
    ("암호", Secret("password")),
    ("토큰", Secret("token")),
    ("пароль", Secret("password")),
    ("Пароль", Secret("password")),
    ("ПАРОЛЬ", Secret("password")),
    ("пароля", Secret("password")),
    ("токен", Secret("token")),
    ("Токен", Secret("token")),
    ("senha", Secret("password")),
    ("contrasena", Secret("password")),
    ("clave", Secret("password")),
    ("contraseña", Secret("password")),
    ("Contraseña", Secret("password")),
    ("hasło", Secret("password")),
    ("Hasło", Secret("password")),
    ("şifre", Secret("password")),
    ("Şifre", Secret("password")),
    ("mật khẩu", Secret("password")),
    ("Mật khẩu", Secret("password")),
    ("lösenord", Secret("password")),
    ("Lösenord", Secret("password")),
    ("jeton d'accès", Secret("token")),
    ("Jeton d'accès", Secret("token")),
    ("clé", Perhaps("token")),
    ("Clé", Perhaps("token")),
    ("clé API", Secret("token")),
    ("Clé API", Secret("token")),
    ("chlüssel", Perhaps("token")),
    ("ключ", Perhaps("token")),
    ("Ключ", Perhaps("token")),
    ("Ключ API", Secret("token")),
    ("ключ API", Secret("token")),
    ("キー", Perhaps("token")),
    ("秘密鍵", Secret("token")),
    ("كلمة المرور", Secret("password")),
    ("סיסמה", Secret("password")),
    ("पासवर्ड", Secret("password")),
    ("รหัสผ่าน", Secret("password")),
];

/// How such labels are joined to their value.
const OTHER_JOINTS: &[&str] = &[
    "是",
    "为",
    "為",
    "就是",
    "设置为",
    "設置為",
    "改为",
    "改為",
    "重置为",
    "变更为",
    "已重置为",
    "已设置为",
    "已改为",
    "已更新为",
    "错误",
    "不正确",
    "가",
    "이",
    "は",
    "が",
    "는",
    "은",
    "é",
    "É",
    "для",
];

/// How the words of a name are compared.
fn spell(byte: u8) -> u8 {
    match byte {
        b'-' | b'.' => b'_',
        byte => byte.to_ascii_lowercase(),
    }
}

fn is(word: &[u8], other: &str) -> bool {
    word.len() == other.len() && word.iter().zip(other.bytes()).all(|(one, other)| spell(*one) == other)
}

fn ends(word: &[u8], ending: &str) -> bool {
    word.len().checked_sub(ending.len()).is_some_and(|at| is(&word[at..], ending))
}

/// A name without the signs around it.
pub(super) fn trimmed(word: &[u8]) -> &[u8] {
    let is_sign = |byte: &&u8| matches!(**byte, b'-' | b'_' | b'.');
    let word = &word[word.iter().take_while(is_sign).count()..];
    &word[..word.len() - word.iter().rev().take_while(is_sign).count()]
}

/// What `word` says about the value behind it. `left` stands before it.
pub(super) fn meaning(word: &[u8], left: &[u8], is_assignment: bool) -> Option<Meaning> {
    // Its last letter tells most words from labels.
    let last = *word.last()?;
    if !last.is_ascii_uppercase() && !b"drtnespyhwkloaikgm".contains(&last) {
        return None;
    }
    let whole = || WHOLE.iter().find(|(name, _)| is(word, name)).map(|(_, meaning)| *meaning);
    let ending = || ENDINGS.iter().find(|(ending, _)| ends(word, ending)).map(|(_, meaning)| *meaning);
    let last_word = || {
        let (at, _) = word.iter().enumerate().rev().find(|(_, byte)| matches!(**byte, b'_' | b'-' | b'.'))?;
        LAST_WORDS.iter().find(|(name, _)| is(&word[at + 1..], name)).map(|(_, meaning)| *meaning)
    };
    // What a name says before such an end, it says with it.
    let filled = || {
        let end = FILLERS.iter().find(|end| ends(word, end) && word.len() > end.len())?;
        let name = trimmed(&word[..word.len() - end.len()]);
        ENDINGS.iter().chain(KEYS).find(|(ending, _)| ends(name, ending)).map(|(_, meaning)| *meaning)
    };
    let hump = || {
        let at = word.iter().rposition(u8::is_ascii_uppercase).filter(|at| *at > 0)?;
        let is_hump = word[at - 1].is_ascii_lowercase() && !ends(&word[..at], "by");
        LAST_WORDS.iter().find(|(name, _)| is_hump && is(&word[at..], name)).map(|(_, meaning)| *meaning)
    };
    let other = || match word {
        // `mot de passe`, and a command of Redis.
        b"passe" if left.ends_with(b"de ") => Some(Secret("password")),
        b"AUTH" => Some(Secret("password")),
        // What Bundler sends to a host.
        _ if word.starts_with(b"BUNDLE_") && memchr::memmem::find(word, b"__").is_some() => {
            Some(Secret("password"))
        }
        _ => None,
    };
    let variable =
        || (is_assignment && is_variable(word) && is_secret_variable(word)).then_some(Perhaps("token"));
    let meaning = other()
        .or_else(whole)
        .or_else(ending)
        .or_else(last_word)
        .or_else(hump)
        .or_else(filled)
        .or_else(variable)?;
    let first = word.split(|byte| matches!(byte, b'_' | b'-' | b'.')).next().unwrap_or(word);
    let previous = previous_word(left);
    let is_public = |name: &[u8]| PUBLIC.iter().any(|public| is(name, public));
    if (first.len() < word.len() && is_public(first)) || is_public(previous) || ends(word, "publickey") {
        return None;
    }
    match meaning {
        Perhaps(kind) if SECRET_KINDS.iter().any(|known| is(previous, known)) => Some(Secret(kind)),
        // By itself such a word says nothing.
        Perhaps(_) if !is_assignment => None,
        other => Some(other),
    }
}

/// Whether a name is written as those of variables are.
fn is_variable(word: &[u8]) -> bool {
    word.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
}

fn previous_word(left: &[u8]) -> &[u8] {
    let left = left.strip_suffix(b" ").unwrap_or_default();
    let length = left.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    &left[left.len() - length..]
}

/// A label beyond ASCII at the end of `text`, with what joins it to a value.
pub(super) fn of_other_script(text: &[u8]) -> Option<Meaning> {
    if text.is_ascii() {
        return None;
    }
    let mut rest = text;
    for _ in 0..3 {
        let label = OTHER_SCRIPTS.iter().find(|(label, _)| rest.ends_with(label.as_bytes()));
        if let Some((_, meaning)) = label {
            return Some(*meaning);
        }
        let joint = OTHER_JOINTS.iter().filter_map(|joint| rest.strip_suffix(joint.as_bytes()));
        rest = joint.min_by_key(|rest| rest.len())?.trim_ascii_end();
        let signs = ["：", ":"].iter().find_map(|sign| rest.strip_suffix(sign.as_bytes()));
        rest = signs.unwrap_or(rest);
    }
    None
}

/// Whether a word only joins a label to its value. So do numbers (`string(20)`), and what is left of a colour (`[0m`).
pub(super) fn joins(word: &[u8]) -> bool {
    let digits = word.strip_suffix(b"m").unwrap_or(word);
    JOINTS.iter().any(|joint| is(word, joint))
        || (!digits.is_empty() && digits.len() <= 4 && digits.iter().all(u8::is_ascii_digit))
}

/// Issuers whose tokens have no form of their own.
const ISSUERS: [&str; 75] = [
    "adafruit",
    "algolia",
    "alipay",
    "amplitude",
    "beamer",
    "bitbucket",
    "bittrex",
    "braintree",
    "cloudflare",
    "codecov",
    "cohere",
    "coinbase",
    "confluent",
    "contentful",
    "datadog",
    "discord",
    "droneci",
    "dropbox",
    "easypost",
    "etsy",
    "facebook",
    "fastly",
    "finicity",
    "finnhub",
    "flickr",
    "freshbooks",
    "gitter",
    "heroku",
    "hubspot",
    "intercom",
    "jfrog",
    "artifactory",
    "kakao",
    "kraken",
    "kucoin",
    "launchdarkly",
    "line_channel",
    "linkedin",
    "looker",
    "mapbox",
    "mattermost",
    "meraki",
    "messagebird",
    "mistral",
    "netlify",
    "nexmo",
    "nytimes",
    "okta",
    "opsgenie",
    "pagerduty",
    "plaid",
    "private_ai",
    "privateai",
    "pusher",
    "qiniu",
    "rapidapi",
    "sendbird",
    "sentry",
    "snyk",
    "squarespace",
    "sumo",
    "sumologic",
    "telegram",
    "travis",
    "travisci",
    "trello",
    "twitch",
    "twitter",
    "typeform",
    "vonage",
    "wasabi",
    "wakatime",
    "yandex",
    "zendesk",
    "zerotier",
];

/// Whether a name is that of an issuer, and not of something else that the issuer numbers (`SNYK_ORG_ID`).
pub(super) fn is_of_issuer(name: &[u8]) -> bool {
    const ABOUT: &str = "id app account project org team user name host url version index region zone sha hash digest \
        checksum commit rev ref tag build image path file email domain action dsn";
    let is_turn = |pair: &[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
    let last =
        name.windows(2).rposition(|pair| is_turn(pair) || spell(pair[0]) == b'_').map_or(0, |at| at + 1);
    let is_about = ABOUT.split_ascii_whitespace().any(|about| is(&name[last..], about));
    let name: Vec<u8> = name.iter().map(|byte| spell(*byte)).collect();
    let words = || (0..name.len()).filter(|at| *at == 0 || name[*at - 1] == b'_').map(|at| &name[at..]);
    !is_about && words().any(|rest| ISSUERS.iter().any(|issuer| rest.starts_with(issuer.as_bytes())))
}

/// Whether a function of this name takes a user and a password.
pub(super) fn is_login(word: &[u8]) -> bool {
    const LOGINS: [&str; 22] = [
        "login",
        "auth",
        "credential",
        "credentials",
        "bind_s",
        "bind",
        "authenticate",
        "signin",
        "sign_in",
        "logon",
        "securestring",
        "password",
        "getconnection",
        "mysqli_connect",
        "mysql_connect",
        "pdo",
        "jwt_sign",
        "jwt_encode",
        "createhmac",
        "hmac_new",
        "cookieparser",
        "cookiesession",
    ];
    LOGINS.iter().any(|name| ends(word, name))
}

/// Whether the heading of a column, or the name of a field, says that what stands under it is secret.
pub(super) fn is_heading(cell: &[u8]) -> bool {
    let is_around = |byte: &&u8| byte.is_ascii_whitespace() || b"\"'`*|:".contains(byte);
    let cell = &cell[cell.iter().take_while(is_around).count()..];
    let cell = &cell[..cell.len() - cell.iter().rev().take_while(is_around).count()];
    if cell.len() > 40 {
        return false;
    }
    let (left, word) = match cell.iter().rposition(|byte| *byte == b' ') {
        Some(space) => cell.split_at(space + 1),
        None => (&b""[..], cell),
    };
    matches!(meaning(trimmed(word), left, true), Some(Secret(_)))
        || matches!(of_other_script(cell), Some(Secret(_)))
}

/// Whether a name says anything.
pub(super) fn is_label(name: &[u8]) -> bool {
    meaning(trimmed(name), b"", true).is_some()
}

/// What the name of a field, of a column or of a place on a page says about its value: one of its words is a label.
pub(super) fn kind_of_field(name: &str) -> Option<&'static str> {
    if name.len() > 80 {
        return None;
    }
    if let Some(Secret(kind)) = of_other_script(name.as_bytes()) {
        return Some(kind);
    }
    // A field may be called by more than its label: `密码输入框`.
    if !name.is_ascii() {
        let label = OTHER_SCRIPTS.iter().find(|(label, _)| !label.is_ascii() && name.contains(label));
        if let Some((_, Secret(kind))) = label {
            return Some(kind);
        }
    }
    let mut words = name.as_bytes().split(|byte| !is_part_of_name(*byte)).filter(|word| !word.is_empty());
    let mut last: &[u8] = b"";
    words.find_map(|word| {
        let found = match meaning(trimmed(word), &[last, b" "].concat(), true) {
            Some(Secret(kind)) => Some(kind),
            Some(Perhaps(_)) | None => None,
        };
        last = word;
        found
    })
}

/// Whether a name begins like those of secrets that everybody may know: `cache-key`.
pub(super) fn is_public(name: &[u8]) -> bool {
    let first = name.split(|byte| matches!(byte, b'_' | b'-' | b'.')).next().unwrap_or(name);
    first.len() < name.len() && PUBLIC.iter().any(|public| is(first, public))
}

fn is_part_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}
