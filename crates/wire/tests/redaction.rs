//! What is cut, what stays, and that both hold wherever it stands.

use std::borrow::Cow;

use proptest::prelude::*;
use unstuck_wire::redact::{redact, redact_bytes};

/// A text, the secret in it, and what is left. `{}` is where the secret stands.
///
/// The secrets are put together here, so that no scanner takes this file for a leak.
fn secrets() -> Vec<(&'static str, String, &'static str)> {
    let long = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5";
    vec![
        ("push with {} failed", format!("ghp_{long}"), "github-token"),
        ("github_pat: {}", format!("github_pat_11ABCDEFG0_{long}"), "github-token"),
        ("\\n{}\\n", format!("gho_{long}"), "github-token"),
        ("key {}.", format!("sk-ant-api03-{long}-x_y"), "api-key"),
        ("key {},", format!("sk-proj-{long}"), "api-key"),
        ("{}", format!("sk-{long}"), "api-key"),
        ("slack {}", format!("xoxb-1234567890-1234567890-{long}"), "slack-token"),
        ("slack {}", format!("xoxp-1234567890-{long}"), "slack-token"),
        ("POST https://{}", format!("hooks.slack.com/services/T0000/B0000/{long}"), "slack-webhook"),
        ("InvalidAccessKeyId {}", "AKIAIOSFODNN7EXAMPLE".to_owned(), "aws-key"),
        ("?key={}&x=1", format!("AIza{}", &long[..35]), "google-key"),
        ("clone {}", format!("glpat-{}", &long[..20]), "gitlab-token"),
        ("_authToken={}", format!("npm_{long}"), "npm-token"),
        ("upload {}", format!("pypi-AgEIcHlwaS5vcmc{long}{long}"), "pypi-token"),
        ("login {}", format!("hf_{long}"), "huggingface-token"),
        ("stripe {}", format!("sk_live_{long}"), "stripe-key"),
        ("jwt {}", format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{long}"), "jwt"),
        ("\u{1b}[31m{}\u{1b}[0m", format!("hf_{long}"), "huggingface-token"),
        ("curl -H 'Authorization: Bearer {}'", "abcdef1234567890".to_owned(), "bearer-token"),
        ("> authorization: Basic {}", "dXNlcjpwYXNzd29yZA==".to_owned(), "authorization"),
        ("Authorization: token {}", "0123456789abcdef0123".to_owned(), "authorization"),
        ("x-api-key: {}\n", "a1b2c3d4e5f6".to_owned(), "authorization"),
        ("PRIVATE-TOKEN: {}", "a1b2c3d4e5f6".to_owned(), "authorization"),
        ("login?user=me&password={}&x=1", "hunter2".to_owned(), "password"),
        ("Server=db;Password={};Timeout=3", "hunter2".to_owned(), "password"),
        ("password='{}'", "correct horse battery".to_owned(), "password"),
        ("password = \"{}\"", "hunter2".to_owned(), "password"),
        ("{\"password\": \"{}\"}", "hunter2".to_owned(), "password"),
        ("{\\\"password\\\": \\\"{}\\\"}", "hunter2".to_owned(), "password"),
        ("{'clientSecret': '{}'}", "abcdefg".to_owned(), "password"),
        ("db_password: {}\nnext", "s3cr3tpassw0rd".to_owned(), "password"),
        ("tool --password {} --verbose", "hunter2".to_owned(), "password"),
        ("tool --password={} --verbose", "hunter2".to_owned(), "password"),
        ("tool --api-key {}", "a1b2c3d4e5".to_owned(), "token"),
        ("mysql -u root -p{} db", "hunter2".to_owned(), "password"),
        ("mysqldump -p'{}' db", "hunter 2".to_owned(), "password"),
        ("sshpass -p {} ssh host", "hunter2".to_owned(), "password"),
        ("curl -u admin:{} https://x", "hunter2".to_owned(), "password"),
        ("https://user:{}@example.com/x", "p@ss!word".to_owned(), "url-password"),
        ("postgres://app:{}@db:5432/app", "hunter2".to_owned(), "url-password"),
        ("export DEPLOY_TOKEN={}", "a1b2c3d4e5".to_owned(), "token"),
        ("AWS_SECRET_ACCESS_KEY={}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(), "token"),
        ("aws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(), "token"),
        (
            "[default]\n  aws_secret_access_key = {}\nregion = x",
            long.replace(char::is_numeric, "Q") + "aBcDe",
            "token",
        ),
        ("the api_key = {} was refused", "wJalrXUtnFEMI7K7MDENGbPxRfiCY".to_owned(), "token"),
        ("[client]\npassword = {}\n", "hunter2hunter".to_owned(), "password"),
        (
            "mail {}",
            format!("SG.{}.{}", &long[..22], "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5xYz1234"),
            "sendgrid-key",
        ),
        ("bot123456789{} said", format!(":AA{}", &long[..33]), "telegram-token"),
        ("POST https://{}", format!("discord.com/api/webhooks/1234567890/{long}"), "discord-webhook"),
        (
            "{}",
            format!("AGE-SECRET-KEY-1{}", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE"),
            "age-key",
        ),
        ("CLIENT_SECRET={}", "abcdefg".to_owned(), "password"),
        ("PGPASSWORD={} psql", "hunter2".to_owned(), "password"),
        ("MYSQL_PWD={}", "hunter2".to_owned(), "password"),
        ("{\"access_token\":\"{}\"}", "a1b2c3d4e5f6".to_owned(), "token"),
        (
            "key:\n{}\nafter",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nAAAA\n-----END OPENSSH PRIVATE KEY-----"
                .to_owned(),
            "private-key",
        ),
        (
            "{}\nafter",
            format!("MIIEpAIBAAKCAQEA{long}\n{long}{long}\nQ2==\n-----END RSA PRIVATE KEY-----"),
            "private-key",
        ),
        ("https://x.example/b?sv=1&sig={}&x=1", format!("{long}%3D"), "token"),
        ("https://x.example/o?X-Amz-Signature={}", "0f1e2d3c4b5a69788796a5b4c3d2e1f0".to_owned(), "token"),
        ("https://x.example/?next=%2Fcb%3Faccess_token%3D{}%26x%3D1", "a1b2c3d4e5f6".to_owned(), "token"),
        ("next=https%3A%2F%2Fapp%3A{}%40db.example%2Fx", "hunter2".to_owned(), "url-password"),
        ("next=https%253A%252F%252Fapp%253A{}%2540db.example", "hunter2".to_owned(), "url-password"),
        ("a\\u0026password\\u003d{}\\u0026b", "hunter2".to_owned(), "password"),
        ("curl -H 'X-Custom-Token: {}' x", "a1b2c3d4e5f6".to_owned(), "token"),
        ("Cookie: {}\nHost: x", "sid=a1b2c3d4; theme=dark".to_owned(), "cookie"),
        ("< Set-Cookie: {}\r\n", "sid=a1b2c3d4; Path=/; HttpOnly".to_owned(), "cookie"),
        ("curl --cookie '{}' x", "sid=a1b2c3d4".to_owned(), "cookie"),
        ("Basic {}.", "YWRtaW46aHVudGVyMg==".to_owned(), "authorization"),
        ("//registry.example/:_auth={}", "YWRtaW46aHVudGVyMg==".to_owned(), "token"),
        ("DB_PASS={} run", "hunter2".to_owned(), "password"),
        ("AccountKey={};EndpointSuffix=x", format!("{long}=="), "token"),
        ("data {} x", "cGFzc3dvcmQ9aHVudGVyMiBhbmQgbW9yZQ==".to_owned(), "base64"),
        ("data\n{}\nx y", "eyJwYXNzd29yZCI6ICJodW50\nZXIyIiwgInVzZXIiOiAibWUifQ==".to_owned(), "base64"),
        ("{\\\\\\\"password\\\\\\\": \\\\\\\"{}\\\\\\\"}", "hunter2".to_owned(), "password"),
        ("push {}\nfailed", format!("ghp_{}\n    {}", &long[..9], &long[9..]), "github-token"),
        ("push {}\r\nfailed", format!("gh\r\np_{long}"), "github-token"),
        ("id {}\nNEXT", "AKIAIOSFO\nDNN7EXAMPLE".to_owned(), "aws-key"),
        ("tool --token \\\n  {}", "a1b2c3d4".to_owned(), "token"),
        ("key = \"{}\"", format!("sk-{}\" \\\n  \"{}", &long[..12], &long[12..]), "api-key"),
        ("API_KEY={}\nDB_PORT=5432", "a1b2c3\nd4e5f6".to_owned(), "token"),
        ("aws configure set aws_secret_access_key {}", "wJalrXUtnFEMIabc".to_owned(), "token"),
        (
            "aws configure set profile.x.aws_secret_access_key {} && ls",
            "wJalrXUtnFEMIabc".to_owned(),
            "token",
        ),
        ("npm config set //registry.example/:_authToken {}", "a1b2c3d4e5f6".to_owned(), "token"),
        ("vault login {}", format!("hvs.{}", &long[..24]), "vault-token"),
        ("VAULT {} x", format!("hvb.{long}"), "vault-token"),
        ("recovery {}.", format!("hvr.{long}"), "vault-token"),
        ("vault login {}", "s.aB3dE5gH7jK9mN1pQ3".to_owned(), "token"),
        ("gh secret set NAME --body {}", "hunter2".to_owned(), "password"),
        ("gh secret set NAME --body='{}' -R a/b", "hunter 2".to_owned(), "password"),
        ("gh secret set NAME -b {}", "hunter2".to_owned(), "password"),
        ("redis-cli -h db -a {} ping", "hunter2".to_owned(), "password"),
        ("redis-cli --pass '{}' ping", "hunter2".to_owned(), "password"),
        ("echo {} | sudo -S apt-get update", "hunter2".to_owned(), "password"),
        ("cd x && echo '{}' | sudo -kS -p '' ls", "hunter 2".to_owned(), "password"),
        ("printf '%s\\n' '{}' | sudo -S ls", "hunter2".to_owned(), "password"),
        ("sudo -S ls <<< {}", "hunter2".to_owned(), "password"),
        ("echo \"u:{}\" | chpasswd", "hunter2".to_owned(), "password"),
        ("echo u:{} | sudo chpasswd", "hunter2".to_owned(), "password"),
        ("echo -n {} | docker login -u me --password-stdin", "hunter2".to_owned(), "password"),
        ("htpasswd -b f u {}", "hunter2".to_owned(), "password"),
        ("htpasswd -cbB /etc/f u '{}' && ls", "hunter2".to_owned(), "password"),
        ("htpasswd -nb u {}", "hunter2".to_owned(), "password"),
        ("zip -P {} a.zip f", "hunter2".to_owned(), "password"),
        ("unzip -P{} a.zip", "hunter2".to_owned(), "password"),
        ("7z x a.7z -p{} -y", "hunter2".to_owned(), "password"),
        ("ldapsearch -x -D cn=a -w {} -b dc=x", "hunter2".to_owned(), "password"),
        ("smbclient //h/s -U u%{}", "hunter2".to_owned(), "password"),
        ("http -a u:{} https://a.example", "hunter2".to_owned(), "password"),
        ("http --auth=u:{} https://a.example", "hunter2".to_owned(), "password"),
        ("curl -su admin:{} https://a.example", "hunter2".to_owned(), "password"),
        ("curl -uadmin:{} https://a.example", "hunter2".to_owned(), "password"),
        ("sshpass -p{} ssh host", "hunter2".to_owned(), "password"),
        ("openssl rsa -in k.pem -passin pass:{} -out o", "hunter2".to_owned(), "password"),
        ("openssl enc -aes-256-cbc -k {} -in a", "hunter2".to_owned(), "password"),
        ("Passwort: {}", "Sommer2024".to_owned(), "password"),
        ("Das Kennwort: {} bitte nicht weitergeben", "Sommer2024!".to_owned(), "password"),
        ("le mot de passe : {}", "hunter2".to_owned(), "password"),
        ("contraseña: {}", "hunter2".to_owned(), "password"),
        ("密码：{}", "hunter2".to_owned(), "password"),
        ("数据库密码是{}，请保密", "hunter2".to_owned(), "password"),
        ("密碼：{}。", "Abc12345".to_owned(), "password"),
        ("パスワード: {}", "hunter2".to_owned(), "password"),
        ("the password is {}.", "hunter2".to_owned(), "password"),
        ("cut {}", "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA".to_owned(), "private-key"),
    ]
}

/// Texts that only look as if they held a secret.
const ORDINARY: &[&str] = &[
    "",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "index 89e6c98d92887913cadf06b2adb97f26cde4849b..2b66fd261ee5c6cfc8de7fa466bab600bcfe4f69 100644",
    "request 550e8400-e29b-41d4-a716-446655440000 failed",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "error: the argument '--password <PASSWORD>' requires a value",
    "the --password option is required",
    "docker login --password-stdin",
    "Password: ",
    "password: required",
    "Authorization: required",
    "Bearer of bad news about authentication",
    "fn token(&self) -> Token { self.token }",
    "let token = next_token();",
    "login(user=user, password=password)",
    "connect(password=settings_password, token=get_token(x))",
    "password=$PASSWORD TOKEN=${TOKEN} token={{ token }} SECRET=<your-secret>",
    "password=None secret=null token=undefined",
    "password=******** token=xxxxxxxxxxxx",
    "max_tokens=4096 sort_key=created_at primary_key=id cache_key=v1",
    "SSH_KEY=/home/dev/.ssh/id_ed25519",
    "PWD=/home/dev/project OLDPWD=/home/dev",
    "npm_config_registry=https://registry.example.com npm_package_json=/x/package.json",
    "task-0123456789abcdef0123456789 disk-usage risk-assessment-of-something-long-1234567890",
    "sk-learn sk-estimator-id-12 class=\"sk-toggleable__content-arrow\"",
    "https://example.com:8080/path@2 ssh://git@github.com:22/x git@github.com:a/b.git",
    "http://localhost:3000 and http://user@host/",
    "-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----",
    "mkdir -p a/b && mysql -p db",
    "curl -u admin https://x",
    "token::Kind::Ident expected ':' found '='",
    "eyJ eyJhbGciOiJub25lIn0 a.b.c",
    "AKIA is a prefix; AKIAIOSFODNN7EXAMPLEX is too long",
    "if password == other_password { return }",
    "\u{4f60}\u{597d} password\u{ff1a} token\u{3002}",
    "src/auth/token.rs:12:5: error: unused variable: `secret`",
    "test password_is_hashed ... ok",
    "PASSWORD=\nDB_PORT=5432\nTOKEN=\nUSER2=me",
    "Enter password:\nSorry, try again.\ntoken:\n  kind2: value",
    "sort_key=id\n3f78685 fix the build",
    "http://localhost:3000\ngit@github.com:a/b.git",
    "mysql --help\nmkdir -p build/x1 && mysql -p\nfoo1",
    "Token\n=====\nSecret\n------",
    "MAKEFLAGS=-j --jobserver-auth=fifo:/tmp/GMfifo123456",
    "2 tests_pass=120 first_pass=true",
    "cookie: required; set-cookie: none; cookie=cookies[0]",
    "?code=404&key=name&signature=none",
    "TG9yZW0gaXBzdW0gZG9sb3Igc2l0IGFtZXQsIGNvbnNlY3RldHVy",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "100%2B of /a%20b C:\\new\\token\\x1b",
    "gzip -P x && mkdir -P y1 ; zip -r a.zip b1",
    "zip -r a.zip src -x '*.git1*' | grep -P foo1",
    "7z a a.7z src -p",
    "use redis-cli -a to authenticate; the -a flag of redis-cli is insecure",
    "redis-cli -h db ping | grep -a PONG1",
    "redis-cli -a $REDIS_PASS ping; redis-cli -a \"$PASS\" ping",
    "gh secret set NAME < file.txt; gh pr create --body fixes-issue-12 -b main1",
    "gh secret list; gh issue create -b body1",
    "echo done1 | sudo tee /etc/x",
    "echo $PASS | sudo -S ls",
    "echo hello1 | sudo -u me cat",
    "echo starting1; ls | sudo -S cat",
    "a || b <<< c1",
    "htpasswd -c f user1",
    "ldapsearch -x -b dc=example1 -W",
    "smbclient //h/s -U user1",
    "over http -a lot of time1; https -a",
    "curl -sS -o u:x1 https://a.example/u:1",
    "curl -XPUT https://a.example/u:1",
    "openssl rsa -passin file:/x1 -passout env:PASS1 -passin stdin",
    "aws configure set region eu-central-1; aws configure set output json",
    "git config user.name ada1; npm config set registry https://registry.example",
    "vault login -method=oidc; vault login failed",
    "hvs. and hvac.Client(url1) hvs.short1",
    "the password is required; password is sha256-hashed; the password is 8 characters long",
    "Password is too short1 or password is base64 encoded",
    "Das Passwort ist falsch. Passwort: erforderlich, Kennwort: ****",
    "mot de passe : obligatoire; contraseña: requerida",
    "密码：必填 密码: 至少8位 密码错误 密碼：******",
    "パスワード: 必須 パスワードは8文字以上",
    "integrity sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
    "[redacted:password] password=[redacted:password] --token [redacted:token] https://u:[redacted:url-password]@h",
];

#[test]
fn a_secret_is_cut_and_what_surrounds_it_stays() {
    for (text, secret, kind) in secrets() {
        let whole = text.replacen("{}", &secret, 1);
        let expected = text.replacen("{}", &format!("[redacted:{kind}]"), 1);
        assert_eq!(redact(&whole), expected, "{whole}");
    }
}

#[test]
fn ordinary_text_is_handed_back_as_it_is() {
    for text in ORDINARY {
        assert_eq!(redact(text), *text);
        assert!(matches!(redact(text), Cow::Borrowed(_)), "{text}");
    }
}

#[test]
fn output_that_is_not_text_keeps_its_bytes() {
    let text = b"\xff\xfe PASSWORD=hunter2 \x00\xff";
    assert_eq!(redact_bytes(text), b"\xff\xfe PASSWORD=[redacted:password] \x00\xff".as_slice());
}

/// Texts that repeat what makes a search look around. Were the time not linear, this test would not end.
#[test]
fn hostile_text_is_read_in_passing() {
    let repeated = [
        "A",
        "Ab",
        "=",
        "\n",
        "a\n",
        "\\",
        "\\n",
        "%41",
        "%253D",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "token=",
        "token%3Da1 ",
        "password=x1x ",
        "password=x1xy\n",
        "password=\"",
        "password='x\n",
        "--token ",
        "ghp_",
        "sk-a1\n",
        "eyJ",
        "eyJ.",
        "cookie: a=",
        "cookie:'",
        "://a:",
        "mysql -p",
        "\"\\\n\"",
        "TG9yZW0gaXBzdW0g",
        "VkVjNWVWcFhNR2RoV0VKb",
        "Bearer ",
        "Basic a",
        "AKIA",
        "[redacted:",
        " -p",
        "curl -u",
        "echo a1b | sudo -S ",
        "| sudo -S",
        "<<<",
        "config set token ",
        "htpasswd -b ",
        "hvs.",
        "密码：",
        "password is ",
    ];
    for piece in repeated {
        let text = piece.repeat(40_000 / piece.len());
        let once = redact(&text).into_owned();
        assert!(redact(&once) == once, "{piece:?} is not cut in one go");
    }
}

/// Pieces that are likely to disturb each other.
fn piece() -> impl Strategy<Value = String> {
    let secrets =
        secrets().into_iter().map(|(text, secret, _)| text.replacen("{}", &secret, 1)).collect::<Vec<_>>();
    let ordinary = ORDINARY.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let glue = [
        "=",
        ":",
        "\"",
        "'",
        "\\",
        "--",
        "@",
        "://",
        " ",
        "\n",
        "password",
        "token",
        "[redacted:",
        "]",
        "-p",
        "mysql",
        "é",
    ];
    prop_oneof![
        prop::sample::select(secrets),
        prop::sample::select(ordinary),
        prop::sample::select(glue.map(str::to_owned).to_vec()),
        ".{0,12}",
    ]
}

proptest! {
    #[test]
    fn cutting_twice_is_cutting_once(pieces in prop::collection::vec(piece(), 0..12)) {
        let once = redact(&pieces.concat()).into_owned();
        prop_assert_eq!(redact(&once), once.as_str());
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let once = redact_bytes(&bytes).into_owned();
        prop_assert_eq!(redact_bytes(&once), once.as_slice());
    }

    #[test]
    fn no_secret_survives_between_other_lines(
        before in "[^\\x00]{0,40}",
        after in "[^\\x00]{0,40}",
        at in 0..1000_usize,
    ) {
        let secrets = secrets();
        let (text, secret, _) = &secrets[at % secrets.len()];
        let whole = format!("{before}\n{}\n{after}", text.replacen("{}", secret, 1));
        prop_assert!(!redact(&whole).contains(secret.as_str()), "{}", whole);
    }
}
