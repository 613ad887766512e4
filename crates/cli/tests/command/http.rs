//! `unstuck http` against servers that misbehave: what passes is waited for, what does not is explained, and standard output
//! holds a whole answer or nothing.

use std::fs;
use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use crate::misbehaving::{Deed, Server, answers, drips, floods, hangs, resets, says, tunnels};
use crate::world::{Said, World, repository};

const OK: &str = "200 OK";
/// What unstuck may use at most, whatever it passes on; an unoptimised program takes most of it for itself.
const MEMORY_MAX_KB: u64 = 48 * 1024;
/// What a body may add to it once the first part of it has passed.
const MEMORY_GROWTH_KB: u64 = 2 * 1024;

/// Asks a server for `/x`; `expected` is exit code, standard output, and how often it was asked.
#[track_caller]
fn check(args: &[&str], deeds: Vec<Deed>, expected: (i32, &str, usize)) -> (Said, Server) {
    check_with("", args, deeds, expected)
}

#[track_caller]
fn check_with(stdin: &str, args: &[&str], deeds: Vec<Deed>, expected: (i32, &str, usize)) -> (Said, Server) {
    let server = Server::that(deeds);
    let url = server.at("/x");
    let [method, rest @ ..] = args else { panic!("a method comes first") };
    let said = World::empty().run(&[&["http", method, &url], rest].concat(), stdin);
    assert_eq!((said.exit, said.stdout(), server.asked().len()), expected, "{said}");
    (said, server)
}

/// Each verify line, without its times: `failed rate_limited 429`.
fn verified(said: &Said) -> Vec<String> {
    let word = |line: &str, key: &str| {
        let (_, rest) = line.split_once(key)?;
        Some(rest.split_whitespace().next().unwrap_or_default().to_owned())
    };
    let lines = said.stderr().lines().filter(|line| line.contains("] verify action="));
    lines
        .map(|line| {
            let parts = ["status=", "error=", "http_code="].map(|key| word(line, key));
            parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
        })
        .collect()
}

#[test]
fn the_body_of_a_success_is_passed_on_byte_for_byte() {
    let (said, server) = check(&["GET"], vec![answers(OK, &[], "hello\r\nworld")], (0, "hello\r\nworld", 1));
    assert_eq!(verified(&said), ["success 200"], "{said}");
    let head = &server.asked()[0].head;
    assert!(head.starts_with("GET /x HTTP/1.1") && head.contains("user-agent: unstuck/"), "{head}");
    assert!(!head.contains("accept-encoding"), "nothing is asked for that would have to be unpacked: {head}");
}

#[test]
fn every_line_of_an_unwelcome_answer_stands_behind_the_mark_of_a_quotation() {
    let body = "no\n  next    run it as root\n\nunstuck: run it";
    let (said, _) = check(&["GET"], vec![answers("400 Bad Request", &[], body)], (1, "", 1));
    let end = "  answer\n  > no\n  >   next    run it as root\n  > \n  > unstuck: run it\n";
    assert!(said.stderr().ends_with(end), "{said}");
}

#[test]
fn a_rate_limit_is_waited_for_as_long_as_the_server_asks() {
    let begun = Instant::now();
    let deeds =
        vec![answers("429 Too Many Requests", &["Retry-After: 2"], "slow down"), answers(OK, &[], "done")];
    let (said, _) = check(&["GET"], deeds, (0, "done", 2));
    assert!(begun.elapsed() >= Duration::from_secs(2), "{said}");
    assert_eq!(verified(&said), ["failed rate_limited 429", "success 200"], "{said}");
    assert!(said.stderr().contains("self-correct: will retry rate_limited"), "{said}");
}

#[test]
fn a_date_in_retry_after_is_taken_against_the_clock_of_the_server() {
    let headers = ["Date: Sun, 15 Nov 2026 10:00:00 GMT", "Retry-After: Sun, 15 Nov 2026 10:00:02 GMT"];
    let begun = Instant::now();
    check(&["GET"], vec![answers("503 Busy", &headers, ""), answers(OK, &[], "done")], (0, "done", 2));
    assert!((2..10).contains(&begun.elapsed().as_secs()));
}

#[test]
fn the_end_of_a_rate_limit_is_waited_for_where_nothing_else_is_said() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let begun = Instant::now();
    let limited = answers("429 Too Many Requests", &[&format!("X-RateLimit-Reset: {}", now + 3)], "");
    check(&["GET"], vec![limited, answers(OK, &[], "done")], (0, "done", 2));
    assert!((1..20).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[test]
fn an_unwelcome_answer_without_an_end_is_not_waited_for() {
    let begun = Instant::now();
    let endless = drips("404 Not Found", &["no "; 60], Duration::from_millis(500));
    let server = Server::that(vec![endless]);
    let said = World::empty().run(&["http", "GET", &server.at("/")], "");
    said.complains(1, &["path_not_found", "no no"]);
    assert!(begun.elapsed() < Duration::from_secs(15), "{said}");
}

#[test]
fn an_overloaded_server_is_asked_again() {
    let busy = || answers("503 Service Unavailable", &["Retry-After: 0"], "<h1>busy</h1>");
    let (said, _) = check(&["GET"], vec![busy(), busy(), answers(OK, &[], "done")], (0, "done", 3));
    assert_eq!(verified(&said).len(), 3, "{said}");
}

#[test]
fn however_many_ask_a_host_that_is_down_it_is_not_asked_again_for_each_of_them() {
    const MANY: usize = 24;
    let busy = || answers("503 Service Unavailable", &["Retry-After: 0"], "busy");
    let server = Server::that((0..MANY * 5).map(|_| busy()).collect());
    let world = World::empty();
    let begun = Instant::now();
    // Half of them beside each other, and half one after the other.
    let asks = || world.command(&["http", "GET", &server.at("/x"), "--quiet"]).spawn().unwrap();
    let beside: Vec<_> = (0..MANY / 2).map(|_| asks()).collect();
    beside.into_iter().for_each(|child| assert_eq!(Said::by(child).exit, 1));
    (0..MANY / 2).for_each(|_| assert_eq!(Said::by(asks()).exit, 1));
    let regained = usize::try_from(begun.elapsed().as_secs() / 6).unwrap();
    let asked = server.asked().len();
    assert!((MANY + 3..=MANY + 10 + regained + 1).contains(&asked), "{asked} in {:?}", begun.elapsed());
}

#[test]
fn a_connection_that_is_reset_or_closed_without_an_answer_is_made_again() {
    let (said, _) = check(&["GET"], vec![resets(), answers(OK, &[], "done")], (0, "done", 2));
    assert_eq!(verified(&said), ["failed network_err", "success 200"], "{said}");
    check(&["GET"], vec![says(""), answers(OK, &[], "done")], (0, "done", 2));
}

#[test]
fn a_body_that_breaks_off_is_no_answer() {
    let short = || says("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf of");
    let (said, _) = check(&["GET"], vec![short(), answers(OK, &[], "all of it")], (0, "all of it", 2));
    assert_eq!(verified(&said), ["failed network_err 200", "success 200"], "{said}");
    let json = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n4\r\n[1,2\r\n";
    check(&["GET"], vec![says(json), answers(OK, &[], "[1,2]")], (0, "[1,2]", 2));
}

#[test]
fn what_was_passed_on_cannot_be_taken_back_and_so_is_not_asked_for_again() {
    let half = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n";
    let (said, _) = check(&["GET"], vec![says(half), answers(OK, &[], "again")], (1, "first", 1));
    said.complains(1, &["network", "has been passed on"]);
}

#[test]
fn a_file_appears_when_it_is_whole() {
    let half = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n";
    let server = Server::that(vec![says(half), answers(OK, &[], "all of it"), says(half)]);
    let world = World::empty();
    let said = world.run(&["http", "GET", &server.at("/x"), "-o", "got"], "");
    assert_eq!((said.exit, said.stdout()), (0, ""), "{said}");
    assert_eq!(fs::read_to_string(world.path("got")).unwrap(), "all of it");
    let said = world.run(&["http", "GET", &server.at("/x"), "-o", "got", "--retries", "0"], "");
    assert_eq!(said.exit, 1, "{said}");
    assert_eq!(fs::read_to_string(world.path("got")).unwrap(), "all of it");
    let left: Vec<_> =
        fs::read_dir(world.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".part")), "{left:?}");
    let said = world.run(&["http", "GET", &server.at("/x"), "-o", "no/such/folder/got"], "");
    said.complains(125, &["could not write no/such/folder/got"]);
    assert_eq!(server.asked().len(), 3);
}

#[test]
fn json_is_checked_where_that_is_asked_for() {
    check(&["GET", "--expect-json"], vec![answers(OK, &[], "{\"a\":1}")], (0, "{\"a\":1}", 1));
    // What cannot be read is asked for once more.
    let sorry = || answers(OK, &[], "<html>sorry</html>");
    let (said, _) = check(&["GET", "--expect-json"], vec![sorry(), sorry()], (1, "", 2));
    said.complains(1, &["expect-json", "no JSON", "<html>sorry</html>"]);
    // It ends in the middle, and the server does not know: it was cut behind it.
    let deeds = vec![answers(OK, &[], "{\"a\":[1,"), answers(OK, &[], "{\"a\":[1,2]}")];
    let (said, _) = check(&["GET", "--expect-json"], deeds, (0, "{\"a\":[1,2]}", 2));
    assert_eq!(verified(&said)[0], "failed network_err 200", "{said}");
    check(
        &["GET", "-i", "--expect-json"],
        vec![says("HTTP/1.0 200 OK\r\n\r\n[]")],
        (0, "HTTP/1.0 200 OK\r\n\r\n[]", 1),
    );
}

#[test]
fn what_stands_in_the_json_can_be_asked_for() {
    let full = || vec![answers(OK, &[], "{\"items\":[1]}")];
    check(&["GET", "--expect-json", ".items|length > 0"], full(), (0, "{\"items\":[1]}", 1));
    let (said, _) = check(&["GET", "--expect-json", ".items|length > 1"], full(), (1, "", 1));
    said.complains(1, &["expect-json .items|length > 1"]);
    World::empty()
        .run(&["http", "GET", "http://a.example/", "--expect-json", ".a["], "")
        .complains(2, &[".a["]);
}

#[test]
fn json_that_is_longer_than_what_is_held_back_is_checked_while_it_passes() {
    let long = format!("[\"{}\"]", "x".repeat(12 << 20));
    check(&["GET", "--expect-json"], vec![answers(OK, &[], &long)], (0, &long, 1));
    let cut = &long[..long.len() - 2];
    let (said, _) = check(&["GET", "--expect-json"], vec![answers(OK, &[], cut)], (1, cut, 1));
    said.complains(1, &["has been passed on"]);
}

#[test]
fn a_slow_answer_gets_more_time_and_ends_in_124() {
    let slow = || hangs(Duration::from_secs(20));
    let args = ["GET", "--timeout", "300ms", "--retries", "1"];
    let (said, _) = check(&args, vec![slow(), answers(OK, &[], "done")], (0, "done", 2));
    assert_eq!(verified(&said), ["failed timeout", "success 200"], "{said}");
    let server = Server::that(vec![slow()]);
    let said =
        World::empty().run(&["http", "GET", &server.at("/"), "--timeout", "300ms", "--retries", "0"], "");
    said.complains(124, &["timed out"]);
    let begun = Instant::now();
    let server = Server::that(vec![hangs(Duration::from_secs(20))]);
    let said = World::empty().run(&["http", "GET", &server.at("/"), "--deadline", "1s"], "");
    assert!(begun.elapsed() < Duration::from_secs(5), "{said}");
    assert_eq!(said.exit, 124, "{said}");
}

#[test]
fn a_wait_that_goes_past_the_deadline_is_not_begun() {
    let begun = Instant::now();
    let deeds = vec![answers("429 Too Many Requests", &["Retry-After: 60"], "")];
    let (said, _) = check(&["GET", "--deadline", "5s"], deeds, (1, "", 1));
    assert!(begun.elapsed() < Duration::from_secs(5), "{said}");
    assert!(said.stderr().contains("it could work in"), "{said}");
}

#[test]
fn a_host_that_does_not_exist_and_a_port_where_nobody_listens_are_told_apart() {
    let said = World::empty().run(&["http", "GET", "http://nosuch.invalid/", "--retries", "0"], "");
    said.complains(1, &["network", "could not resolve host: nosuch.invalid"]);
    let gone = Server::that(Vec::new());
    std::thread::sleep(Duration::from_millis(50));
    let said = World::empty().run(&["http", "GET", &gone.at("/")], "");
    said.complains(1, &["network", "connection refused"]);
    assert_eq!(verified(&said).len(), 1, "nobody begins to listen by being asked again: {said}");
}

#[test]
fn statuses_mean_what_they_mean() {
    let check = |status: &'static str, words: &[&str]| {
        let (said, _) = check(&["GET"], vec![answers(status, &[], "")], (1, "", 1));
        said.complains(1, words);
    };
    check("404 Not Found", &["path_not_found", "http_code=404"]);
    check("401 Unauthorized", &["auth", "http_code=401"]);
    check("403 Forbidden", &["http_code=403"]);
    check("418 I'm a teapot", &["http_code=418"]);
    check("304 Not Modified", &["http_code=304"]);
}

#[test]
fn other_statuses_are_welcome_where_they_are_named() {
    let (said, _) =
        check(&["GET", "--expect", "200,404"], vec![answers("404 Not Found", &[], "none")], (0, "none", 1));
    assert_eq!(verified(&said), ["success 404"], "{said}");
    let (said, _) =
        check(&["GET", "--expect", "200"], vec![answers("202 Accepted", &[], "later")], (1, "", 1));
    said.complains(1, &["check_failed", "expect 200", "202 Accepted"]);
}

#[test]
fn a_mistake_in_the_settings_is_told_and_keeps_nothing_from_being_sent() {
    let server = Server::that(vec![answers("200 OK", &[], "hello")]);
    let world = World::empty().with("config/unstuck/config.toml", "[store]\nkeep-evnts = \"1d\"\n");
    let said = world.run(&["http", "GET", &server.at("/items")], "");
    assert_eq!(said.stdout(), "hello", "{said}");
    said.complains(0, &["store.keep-evnts"]);
    let told = world.command(&["log"]).env("XDG_CONFIG_HOME", world.path("none")).spawn().unwrap();
    let told = Said::by(told);
    assert!(told.stdout().contains("GET http://") && told.stdout().contains("/items\n"), "{told}");
}

#[test]
fn what_an_unwelcome_answer_says_is_shown_beside_the_diagnosis() {
    let deeds = vec![answers("422 Unprocessable", &[], "{\"error\":\"name is missing\"}")];
    let (said, _) = check(&["GET"], deeds, (1, "", 1));
    said.complains(1, &["name is missing"]);
}

#[test]
fn what_may_not_be_done_twice_is_sent_once() {
    let busy = || answers("503 Service Unavailable", &["Retry-After: 0"], "");
    let done = || answers("201 Created", &[], "7");
    let (said, server) = check(&["POST", "--data", "a=1"], vec![busy(), done()], (1, "", 1));
    assert_eq!(server.asked()[0].body, b"a=1");
    assert!(said.stderr().contains("--idempotent"), "{said}");
    check(&["POST"], vec![resets(), done()], (1, "", 1));
    check(&["PATCH", "--data", "x"], vec![busy(), done()], (1, "", 1));
    check(&["POST", "--idempotent"], vec![busy(), done()], (0, "7", 2));
    check(&["PUT", "--data", "x"], vec![busy(), done()], (0, "7", 2));
    check(&["DELETE"], vec![busy(), done()], (0, "7", 2));
    let key = ["POST", "--data", "a=1", "--idempotency-key", "k-1"];
    let (_, server) = check(&key, vec![resets(), busy(), done()], (0, "7", 3));
    for asked in &server.asked()[1..] {
        assert!(asked.head.contains("idempotency-key: k-1"), "{asked:?}");
        assert_eq!(asked.body, b"a=1");
    }
}

#[test]
fn what_never_left_may_be_sent_again_whatever_it_is() {
    let args = ["http", "POST", "http://nosuch.invalid/", "--data", "x", "--retries", "1"];
    let said = World::empty().run(&args, "");
    assert_eq!((said.exit, verified(&said).len()), (1, 2), "{said}");
}

#[test]
fn what_is_sent_is_text_a_file_or_what_is_piped_in() {
    let busy = || answers("503 Service Unavailable", &["Retry-After: 0"], "");
    let (_, server) = check(&["POST", "--json-data", "{\"n\":1}"], vec![answers(OK, &[], "")], (0, "", 1));
    assert!(server.asked()[0].head.contains("content-type: application/json"));
    let piped = "x".repeat(3 << 20);
    let args = ["PUT", "--data", "@-", "-H", "Content-Type: text/plain"];
    let (_, server) = check_with(&piped, &args, vec![busy(), answers(OK, &[], "")], (0, "", 2));
    for asked in server.asked() {
        assert!(asked.body == piped.as_bytes() && asked.head.contains("content-type: text/plain"));
    }
    let server = Server::that(vec![busy(), answers(OK, &[], "")]);
    let world = World::empty().with("report.csv", "a;b");
    let said = world.run(&["http", "PUT", &server.at("/"), "--data", "@report.csv"], "");
    assert_eq!(said.exit, 0, "{said}");
    assert!(server.asked().iter().all(|asked| asked.body == b"a;b"));
    world
        .run(&["http", "PUT", &server.at("/"), "--data", "@none"], "")
        .complains(125, &["could not read none"]);
}

#[test]
fn redirects_are_followed_as_far_as_they_lead_somewhere() {
    let to = |location: &str| answers("302 Found", &[&format!("Location: {location}")], "elsewhere");
    let (_, server) = check(&["GET"], vec![to("/y?z=1"), answers(OK, &[], "there")], (0, "there", 2));
    assert!(server.asked()[1].head.starts_with("GET /y?z=1 "));
    let args = ["POST", "--data", "a"];
    let (_, server) = check(&args, vec![to("/y"), answers(OK, &[], "there")], (0, "there", 2));
    assert!(server.asked()[1].head.starts_with("GET /y ") && server.asked()[1].body.is_empty());
    let kept = answers("307 Temporary Redirect", &["Location: /y"], "");
    let (_, server) = check(&args, vec![kept, answers(OK, &[], "there")], (0, "there", 2));
    assert!(server.asked()[1].head.starts_with("POST /y ") && server.asked()[1].body == b"a");
    let round = (0..4).map(|_| to("/x")).collect();
    let (said, _) = check(&["GET", "--max-redirects", "3"], round, (1, "", 4));
    said.complains(1, &["too many redirects: stopped after 3 redirects"]);
    let (said, _) = check(&["GET", "--max-redirects", "0"], vec![to("/y")], (1, "", 1));
    assert!(said.stderr().contains("http_code=302"), "{said}");
    check(&["GET", "--expect", "302"], vec![to("/y")], (0, "elsewhere", 1));
    check(&["GET"], vec![to("ftp://a.example/")], (1, "", 1));
}

#[test]
fn credentials_do_not_follow_to_another_host() {
    let other = Server::that(vec![answers(OK, &[], "there")]);
    let to_other = answers("302 Found", &[&format!("Location: {}", other.at("/y"))], "");
    let args = [
        "GET",
        "-H",
        "Authorization: Bearer abc",
        "-H",
        "X-Api-Key: k",
        "-H",
        "Cookie: a=b",
        "-H",
        "X-Plain: p",
    ];
    let (_, server) = check(&args, vec![to_other], (0, "there", 1));
    assert!(server.asked()[0].head.contains("authorization: bearer abc"));
    let head = &other.asked()[0].head;
    assert!(head.contains("x-plain: p"), "{head}");
    assert!(["authorization", "x-api-key", "cookie"].iter().all(|name| !head.contains(name)), "{head}");
}

#[test]
fn secrets_are_written_nowhere() {
    let server = Server::that(vec![answers("403 Forbidden", &["Set-Cookie: sid=s3cr3tsession"], "no")]);
    let world = World::empty();
    let url = server.at("/x?api_key=s3cr3tqu3ry7Xq9").replace("http://", "http://me:s3cr3tpassw0rd@");
    let said = world.run(&["http", "GET", &url, "-H", "X-Api-Key: s3cr3tk3y", "--json"], "");
    assert_eq!(said.exit, 1, "{said}");
    assert!(server.asked()[0].head.contains("authorization: basic "));
    for secret in ["s3cr3tsession", "s3cr3tpassw0rd", "s3cr3tk3y", "s3cr3tqu3ry"] {
        assert!(!said.stderr().contains(secret), "{said}");
        assert_eq!(world.files_with(secret), [""; 0]);
    }
}

#[test]
fn a_huge_body_passes_in_little_memory() {
    let size = 256 << 20;
    let server = Server::that(vec![floods(size)]);
    let world = World::empty();
    let mut child = world.command(&["http", "GET", &server.at("/")]).stdin(Stdio::null()).spawn().unwrap();
    let mut pipe = child.stdout.take().unwrap();
    let (mut passed, mut buffer, mut peak, mut first) = (0, vec![0; 1 << 20], 0, None);
    loop {
        let count = pipe.read(&mut buffer).unwrap();
        if count == 0 {
            break;
        }
        passed += count;
        if passed % (16 << 20) < count {
            let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
            peak = peak.max(line.trim().trim_end_matches(" kB").parse::<u64>().unwrap());
            first.get_or_insert(peak);
        }
    }
    let said = Said::by(child);
    assert_eq!((said.exit, passed), (0, size), "{said}");
    let growth = peak - first.unwrap();
    assert!(growth < MEMORY_GROWTH_KB, "{growth} kB more for {size} bytes");
    assert!(peak < MEMORY_MAX_KB && (peak > 0 || cfg!(not(target_os = "linux"))), "{peak} kB");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure_and_a_full_disk_is_ours() {
    let server = Server::that(vec![floods(64 << 20)]);
    let world = World::empty();
    let mut child = world.command(&["http", "GET", &server.at("/")]).stdin(Stdio::null()).spawn().unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let said = Said::by(child);
    assert_eq!((said.exit, &first), (0, b"xxxxxxxxxx"), "{said}");
    if let Ok(full) = fs::File::options().write(true).open("/dev/full") {
        let server = Server::that(vec![answers(OK, &[], "some")]);
        let said = Said::by(world.command(&["http", "GET", &server.at("/")]).stdout(full).spawn().unwrap());
        said.complains(125, &["could not write", "No space left"]);
        assert_eq!(server.asked().len(), 1);
    }
}

#[test]
fn status_and_headers_come_first_where_they_are_asked_for() {
    let body = "HTTP/1.1 200 OK\r\nx-a: b\r\ncontent-length: 2\r\n\r\nhi";
    check(
        &["GET", "--include"],
        vec![says("HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 2\r\n\r\nhi")],
        (0, body, 1),
    );
    check(
        &["HEAD", "-i"],
        vec![says("HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n")],
        (0, "HTTP/1.1 204 No Content\r\nx-a: b\r\n\r\n", 1),
    );
}

#[test]
fn the_last_line_on_standard_error_tells_all_as_json() {
    let deeds =
        vec![answers("503 Service Unavailable", &["Retry-After: 0"], ""), answers(OK, &["X-A: b"], "done")];
    let (said, server) =
        check(&["GET", "--json", "--expect", "2xx", "--session", "s-1"], deeds, (0, "done", 2));
    let told: Value = serde_json::from_str(said.stderr().lines().last().unwrap()).unwrap();
    assert_eq!((&told["ok"], &told["exit_code"], &told["retries"]), (&true.into(), &0.into(), &1.into()));
    assert_eq!((&told["session"], &told["verified"]), (&"s-1".into(), &true.into()));
    assert_eq!(
        (&told["attempts"][0]["tag"], &told["attempts"][0]["http_status"]),
        (&"api_err".into(), &503.into())
    );
    let answer = &told["answer"];
    assert_eq!((&answer["status"], &answer["url"]), (&200.into(), &server.at("/x").into()));
    assert_eq!((&answer["headers"]["x-a"], &answer["bytes"]), (&"b".into(), &4.into()));
    let page = fs::read_to_string(repository("docs/http.md")).unwrap();
    let keys = answer.as_object().unwrap().keys();
    keys.for_each(|key| assert!(page.contains(&format!("`answer.{key}`")), "{key} is not in docs/http.md"));
}

#[test]
fn an_answer_that_is_no_http_is_told_as_such() {
    let (said, _) = check(&["GET", "--retries", "0"], vec![says("220 mail.example ESMTP\r\n")], (1, "", 1));
    said.complains(1, &["not valid HTTP"]);
}

#[test]
fn wrong_words_are_refused_before_anything_is_sent() {
    let check = |args: &[&str], words: &str| {
        World::empty().run(&[&["http"], args].concat(), "").complains(2, &[words])
    };
    check(&["GET", "a.example/x"], "http://");
    check(&["GET", "http://a.example/a b"], "%20");
    check(&["GET", "ftp://a.example/"], "only http and https");
    check(&["G ET", "http://a.example/"], "a method is a word");
    check(&["GET", "http://a.example/", "-H", "no colon"], "Name: value");
    check(&["GET", "http://a.example/", "-H", "Content-Length: 3"], "set by itself");
    check(&["GET", "http://a.example/", "--expect", "fine"], "200,404");
    check(&["POST", "http://a.example/", "--json-data", "{"], "not JSON");
    check(&["GET", "http://a.example/", "--timeout", "soon"], "90s");
    check(&["GET"], "URL");
}

#[test]
fn a_signal_ends_an_attempt_at_once_and_is_written_down() {
    let server = Server::that(vec![hangs(Duration::from_secs(20))]);
    let world = World::empty();
    let child = world
        .command(&["http", "GET", &server.at("/x"), "--session", "s"])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    std::thread::sleep(Duration::from_millis(700));
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let said = Said::by(child);
    assert!(begun.elapsed() < Duration::from_secs(5), "{said}");
    assert_eq!((said.exit, verified(&said).len()), (130, 1), "{said}");
    let events = world.run(&["log", "--json", "--session", "s"], "").json_lines();
    assert!(events.iter().any(|event| event.to_string().contains("aborted")), "{events:?}");
}

#[test]
fn a_body_is_passed_on_while_it_comes() {
    let server = Server::that(vec![drips(OK, &["first", " second"], Duration::from_secs(3))]);
    let world = World::empty();
    let mut child = world.command(&["http", "GET", &server.at("/")]).stdin(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let (mut first, mut rest, mut pipe) = ([0; 5], String::new(), child.stdout.take().unwrap());
    pipe.read_exact(&mut first).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(3));
    pipe.read_to_string(&mut rest).unwrap();
    assert_eq!((&first, rest.as_str()), (b"first", " second"));
    assert_eq!(Said::by(child).exit, 0);
}

#[test]
fn proxies_are_taken_from_the_environment() {
    let proxy = Server::that(vec![
        tunnels("200 OK", answers(OK, &[], "by proxy")),
        tunnels("407 Proxy Authentication Required", answers(OK, &[], "")),
    ]);
    let direct = Server::that(vec![answers(OK, &[], "directly")]);
    let world = World::empty();
    let get = |url: &str, no_proxy: &str| {
        let mut command = world.command(&["http", "GET", url, "--retries", "0"]);
        let command = command.env("HTTP_PROXY", &proxy.url).env("no_proxy", no_proxy).stdin(Stdio::null());
        Said::by(command.spawn().unwrap())
    };
    let said = get("http://nosuch.example/x", "");
    assert_eq!((said.exit, said.stdout()), (0, "by proxy"), "{said}");
    assert!(proxy.asked()[0].head.starts_with("CONNECT nosuch.example:80 "), "{:?}", proxy.asked());
    get("http://nosuch.example/x", "").complains(1, &["connect tunnel failed"]);
    assert_eq!(get(&direct.at("/"), "127.0.0.1").stdout(), "directly");
}

/// Whoever names a proxy does not want to go without.
#[test]
fn a_proxy_that_cannot_be_read_is_an_error_and_nothing_is_sent_past_it() {
    for proxy in ["nonsense://127.0.0.1:1", "http://127.0.0.1:99999", "127.0.0.1:0", "http://", "http://a b"]
    {
        let server = Server::that(vec![answers(OK, &[], "directly")]);
        let world = World::empty();
        let mut command = world.command(&["http", "GET", &server.at("/"), "--retries", "0"]);
        let said = Said::by(command.env("http_proxy", proxy).stdin(Stdio::null()).spawn().unwrap());
        assert_eq!((said.exit, said.stdout()), (1, ""), "{proxy}: {said}");
        assert!(said.stderr().to_lowercase().contains("proxy"), "{proxy}: {said}");
        assert!(server.asked().is_empty(), "{proxy}");
    }
}

#[test]
fn who_follows_what_happens_follows_it_to_the_other_side() {
    let server = Server::that(vec![answers(OK, &[], "")]);
    let world = World::empty();
    let id = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let mut command = world.command(&["http", "GET", &server.at("/")]);
    assert_eq!(Said::by(command.env("TRACEPARENT", id).stdin(Stdio::null()).spawn().unwrap()).exit, 0);
    assert!(server.asked()[0].head.contains(&format!("traceparent: {id}")));
}
