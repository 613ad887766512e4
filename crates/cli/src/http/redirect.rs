//! Where an answer sends us on to, with what method, and what must not go along. Pure: nothing is sent here.
//!
//! Methods follow RFC 9110: only 303 turns everything into a GET, 301 and 302 do so with a POST, 307 and 308 with nothing.

use ureq::http::header::{AUTHORIZATION, COOKIE, HOST, PROXY_AUTHORIZATION};
use ureq::http::{HeaderMap, HeaderName, Method, Uri};

/// One request on the way to an answer.
#[derive(Debug, Clone)]
pub(super) struct Hop {
    pub(super) method: Method,
    pub(super) url: Uri,
    pub(super) headers: HeaderMap,
    /// Does what is to be sent go along?
    pub(super) with_payload: bool,
}

/// What an answer asks for.
#[derive(Debug)]
pub(super) enum Next {
    /// It is the answer.
    Nowhere,
    /// Ask there.
    There(Hop),
    /// It leads where nothing can be asked.
    Astray(String),
}

/// Words in names of headers that hold something only one host should know.
const SECRET: [&str; 9] =
    ["auth", "cookie", "credential", "key", "passw", "secret", "session", "signature", "token"];
/// It has the word, and is no secret: without it a request that was led on could not be repeated.
const NO_SECRET: &str = "idempotency-key";

/// Reads where `hop` is led on to by a status and its `Location`.
pub(super) fn next(hop: &Hop, status: u16, location: Option<&[u8]>) -> Next {
    let (301 | 302 | 303 | 307 | 308, Some(location)) = (status, location) else { return Next::Nowhere };
    let shown = String::from_utf8_lossy(location);
    let Some(url) = join(&hop.url, &encoded(location)) else {
        return Next::Astray(format!("redirected to an address that cannot be used: {shown}"));
    };
    let Some("http" | "https") = url.scheme_str() else {
        return Next::Astray(format!("redirected to an unsupported protocol scheme: {shown}"));
    };
    let becomes_get = match status {
        303 => hop.method != Method::HEAD,
        301 | 302 => hop.method == Method::POST,
        _ => false,
    };
    let is_same_place = keeps_secrets(&hop.url, &url);
    if hop.with_payload && !becomes_get && !is_same_place {
        let place = url.authority().map_or("", |place| place.as_str());
        let scheme = url.scheme_str().unwrap_or_default();
        return Next::Astray(format!(
            "redirected with {status} to {scheme}://{place}, and what was to be sent is for the first address only"
        ));
    }
    let mut headers = hop.headers.clone();
    headers.remove(HOST);
    if becomes_get {
        drop_named(&mut headers, |name| name.starts_with("content-"));
    }
    if !is_same_place {
        drop_named(&mut headers, is_secret);
    }
    Next::There(Hop {
        method: if becomes_get { Method::GET } else { hop.method.clone() },
        url,
        headers,
        with_payload: hop.with_payload && !becomes_get,
    })
}

/// Does a header hold something that only one host should know?
pub(super) fn is_secret(name: &str) -> bool {
    let known = [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION];
    known.iter().any(|known| known == name)
        || name != NO_SECRET && SECRET.iter().any(|word| name.contains(word))
}

fn drop_named(headers: &mut HeaderMap, goes: impl Fn(&str) -> bool) {
    let gone: Vec<HeaderName> = headers.keys().filter(|name| goes(name.as_str())).cloned().collect();
    for name in gone {
        headers.remove(name);
    }
}

/// May the other address know what this one knows? It must be the same host at the same port; to begin to encrypt is allowed.
fn keeps_secrets(from: &Uri, to: &Uri) -> bool {
    let host = |url: &Uri| url.host().map(str::to_ascii_lowercase);
    let encrypts = (from.scheme_str(), to.scheme_str()) == (Some("http"), Some("https"));
    host(from) == host(to)
        && (from.scheme() == to.scheme() && port(from) == port(to)
            || encrypts && (port(from), port(to)) == (80, 443))
}

/// The port, said or not.
pub(crate) fn port(url: &Uri) -> u16 {
    url.port_u16().unwrap_or(if url.scheme_str() == Some("https") { 443 } else { 80 })
}

/// Where a `Location` leads, seen from where it was named, if that is the same host, port and scheme.
pub(crate) fn within_origin(base: &Uri, location: &[u8]) -> Option<Uri> {
    let url = join(base, &encoded(location))?;
    let same_host = base.host()?.eq_ignore_ascii_case(url.host()?);
    (same_host && base.scheme() == url.scheme() && port(base) == port(&url)).then_some(url)
}

/// Does an address name a host, and a port that is one where it names any?
pub(super) fn has_sound_place(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default();
    let place = url.authority().map_or("", |place| place.as_str());
    let names_port = place.rsplit('@').next().is_some_and(|place| place.len() > host.len());
    let is_number =
        place.rsplit(':').next().is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    !host.is_empty() && (!names_port || is_number && url.port_u16().is_some_and(|port| port > 0))
}

/// What servers write into an address although it may not stand there is written as it must.
fn encoded(location: &[u8]) -> String {
    let mut text = String::with_capacity(location.len());
    for byte in location.trim_ascii() {
        match byte {
            b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => text += &format!("%{byte:02X}"),
            b'!'..=b'~' => text.push(char::from(*byte)),
            _ => text += &format!("%{byte:02X}"),
        }
    }
    text
}

/// An address that is seen from another one (RFC 3986, 5.2). Who is to be logged in is not taken from it.
fn join(base: &Uri, location: &str) -> Option<Uri> {
    let location = location.split('#').next().unwrap_or_default();
    let scheme = base.scheme_str()?;
    let has_scheme = location.find([':', '/', '?']).is_some_and(|at| location[at..].starts_with(':'));
    let whole = match location {
        whole if has_scheme => whole.to_owned(),
        there if there.starts_with("//") => format!("{scheme}:{there}"),
        there => {
            let (path, query) = match there.split_once('?') {
                Some((path, query)) => (path, Some(query)),
                None => (there, None),
            };
            let (path, query) = match path {
                "" => (base.path().to_owned(), query.or(base.query())),
                path if path.starts_with('/') => (path.to_owned(), query),
                path => (
                    format!("{}/{path}", base.path().rsplit_once('/').map_or("", |(folder, _)| folder)),
                    query,
                ),
            };
            let query = query.map(|query| format!("?{query}")).unwrap_or_default();
            format!("{scheme}://{}{}{query}", base.authority()?, without_dots(&path))
        }
    };
    let url: Uri = whole.parse().ok().filter(has_sound_place)?;
    Some(match url.authority()?.as_str().rsplit_once('@') {
        Some((_, host)) => {
            let rest = url.path_and_query().map_or("/", |rest| rest.as_str());
            format!("{}://{host}{rest}", url.scheme_str()?).parse().ok()?
        }
        None => url,
    })
}

/// A path whose `.` and `..` are gone.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for part in path.split('/').skip(1) {
        match part {
            "." => {}
            ".." => drop(kept.pop()),
            part => kept.push(part),
        }
    }
    if path.ends_with("/.") || path.ends_with("/..") {
        kept.push("");
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(method: &str, url: &str) -> Hop {
        let mut headers = HeaderMap::new();
        for name in
            ["authorization", "cookie", "x-api-key", "content-type", "accept", "idempotency-key", "host"]
        {
            headers.insert(HeaderName::from_static(name), "x".parse().unwrap());
        }
        Hop { method: method.parse().unwrap(), url: url.parse().unwrap(), headers, with_payload: true }
    }

    /// What is asked next, and which headers go along.
    #[track_caller]
    fn check(method: &str, status: u16, from: &str, location: &str, expected: &str) {
        let said = match next(&hop(method, from), status, Some(location.as_bytes())) {
            Next::Nowhere => "nowhere".to_owned(),
            Next::Astray(why) => why,
            Next::There(hop) => {
                let mut names: Vec<&str> = hop.headers.keys().map(HeaderName::as_str).collect();
                names.sort_unstable();
                let payload = if hop.with_payload { " +" } else { "" };
                format!("{} {}{payload} {}", hop.method, hop.url, names.join(","))
            }
        };
        assert_eq!(said, expected, "{method} {from} {status} {location}");
    }

    const ALL: &str = "accept,authorization,content-type,cookie,idempotency-key,x-api-key";
    const NO_CONTENT: &str = "accept,authorization,cookie,idempotency-key,x-api-key";
    const NO_SECRETS: &str = "accept,content-type,idempotency-key";

    #[test]
    fn the_method_follows_the_status() {
        let there =
            |method, status, expected: &str| check(method, status, "http://a.example/x", "/y", expected);
        there("GET", 301, &format!("GET http://a.example/y + {ALL}"));
        there("POST", 301, &format!("GET http://a.example/y {NO_CONTENT}"));
        there("PUT", 302, &format!("PUT http://a.example/y + {ALL}"));
        there("PUT", 303, &format!("GET http://a.example/y {NO_CONTENT}"));
        there("HEAD", 303, &format!("HEAD http://a.example/y + {ALL}"));
        there("POST", 307, &format!("POST http://a.example/y + {ALL}"));
        there("POST", 308, &format!("POST http://a.example/y + {ALL}"));
        there("GET", 300, "nowhere");
        there("GET", 304, "nowhere");
    }

    #[test]
    fn secrets_never_follow_to_another_host() {
        let check = |from: &str, to: &str, names: &str| {
            let hop = Hop { with_payload: false, ..hop("GET", from) };
            let Next::There(hop) = next(&hop, 302, Some(to.as_bytes())) else { panic!("{to}") };
            let mut all: Vec<&str> = hop.headers.keys().map(HeaderName::as_str).collect();
            all.sort_unstable();
            assert_eq!((hop.url.to_string(), all.join(",")), (to.to_owned(), names.to_owned()), "{from}");
        };
        check("https://a.example/x", "https://a.example/y", ALL);
        check("https://a.example/x", "https://A.example:443/y", ALL);
        check("http://a.example/x", "https://a.example/y", ALL);
        check("https://a.example/x", "http://a.example/y", NO_SECRETS);
        check("https://a.example/x", "https://b.example/y", NO_SECRETS);
        check("https://a.example/x", "https://a.example:8443/y", NO_SECRETS);
        check("http://a.example:8080/x", "https://a.example/y", NO_SECRETS);
    }

    #[test]
    fn a_body_goes_to_no_other_place() {
        let stopped = |method, status, from, to, place: &str| {
            let why = format!(
                "redirected with {status} to {place}, and what was to be sent is for the first address only"
            );
            check(method, status, from, to, &why);
        };
        for status in [307, 308] {
            stopped("POST", status, "http://a.example/", "http://b.example/x?y", "http://b.example");
            stopped("POST", status, "https://a.example/", "http://a.example/", "http://a.example");
            stopped("POST", status, "http://a.example/", "//a.example:81/", "http://a.example:81");
            stopped("DELETE", status, "http://a.example/", "http://a.example.b/", "http://a.example.b");
            stopped("GET", status, "http://a.example/", "http://me:pw@b.example/", "http://b.example");
        }
        stopped("PUT", 301, "http://a.example/", "http://b.example/", "http://b.example");
        stopped("PATCH", 302, "http://a.example/", "http://[::1]:8080/", "http://[::1]:8080");
        check(
            "POST",
            303,
            "http://a.example/",
            "http://b.example/",
            "GET http://b.example/ accept,idempotency-key",
        );
        check(
            "POST",
            302,
            "http://a.example/",
            "http://b.example/",
            "GET http://b.example/ accept,idempotency-key",
        );
    }

    #[test]
    fn a_port_that_is_none_is_an_error_and_not_the_usual_port() {
        for place in ["h:99999", "h:65536", "h:", "h:0", "h:-1", "h:8o", "h:+80", "[::1]:99999", "me@h:99999"]
        {
            for location in [format!("http://{place}/"), format!("//{place}/x")] {
                let expected = format!("redirected to an address that cannot be used: {location}");
                check("GET", 302, "http://a.example/", &location, &expected);
            }
        }
    }

    #[test]
    fn an_address_is_seen_from_where_it_was_named() {
        let check = |location, expected: &str| {
            let base = "http://a.example/b/c/d?q".parse().unwrap();
            let url = join(&base, &encoded(location)).map(|url| url.to_string());
            assert_eq!(url.as_deref().unwrap_or("none"), expected, "{}", location.escape_ascii());
        };
        check(b"g", "http://a.example/b/c/g");
        check(b"./g/", "http://a.example/b/c/g/");
        check(b"/g?y#s", "http://a.example/g?y");
        check(b"?y", "http://a.example/b/c/d?y");
        check(b"", "http://a.example/b/c/d?q");
        check(b"../g", "http://a.example/b/g");
        check(b"../../../g", "http://a.example/g");
        check(b"..", "http://a.example/b/");
        check(b"g:8/h", "none");
        check(b"/a b/\xc3\xbc", "http://a.example/a%20b/%C3%BC");
        check(b"//h.example:81/x", "http://h.example:81/x");
        check(b"https://me:pw@h.example/x", "https://h.example/x");
        check(b"https://", "none");
    }

    #[test]
    fn what_cannot_be_asked_is_said() {
        check(
            "GET",
            302,
            "http://a.example/",
            "ftp://b.example/x",
            "redirected to an unsupported protocol scheme: ftp://b.example/x",
        );
        check(
            "GET",
            302,
            "http://a.example/",
            "http://",
            "redirected to an address that cannot be used: http://",
        );
    }
}
