//! A request as a person asks for it, and as the judge sees it.

use serde_json::{Map, Value, json};
use unstuck_judge::Call;
use ureq::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use ureq::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

use super::payload::Payload;
use super::redirect::has_sound_place;
use super::redirect::{self, Hop};

/// What stands in place of what only one host should know.
const CUT: &str = "…";

/// A request.
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Payload,
}

/// One header as it is written: `Name: value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    name: HeaderName,
    value: HeaderValue,
}

/// What is sent, and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Form,
    Json,
}

impl Request {
    /// Puts it together. What a person says about the content is stronger than what it is taken for.
    pub(crate) fn new(
        method: Method,
        url: Uri,
        headers: &[Header],
        payload: Payload,
        content: Content,
    ) -> Request {
        let (url, login) = without_login(url);
        let mut all = HeaderMap::new();
        for Header { name, value } in headers {
            all.append(name.clone(), value.clone());
        }
        let mut unless_said = |name: HeaderName, value: HeaderValue| {
            all.entry(name).or_insert(value);
        };
        if let Some(login) = login {
            unless_said(AUTHORIZATION, login);
        }
        match (&payload, content) {
            (Payload::Nothing, _) => {}
            (_, Content::Form) => {
                unless_said(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
            }
            (_, Content::Json) => {
                unless_said(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                unless_said(ACCEPT, HeaderValue::from_static("application/json"));
            }
        }
        Request { method, url, headers: all, payload }
    }

    /// Sets a header, unless the person did.
    pub(crate) fn with(mut self, header: Header) -> Request {
        self.headers.entry(header.name).or_insert(header.value);
        self
    }

    /// Does it change something, and is as good sent twice as once: by its method (RFC 9110, 9.2.2), by the key that it carries,
    /// or because a person says so? What only asks needs nobody's word.
    pub(crate) fn is_idempotent(&self, a_person_says_so: bool) -> bool {
        let by_method = [Method::PUT, Method::DELETE].contains(&self.method);
        let has_key = self.headers.contains_key("idempotency-key");
        !self.method.is_safe() && (by_method || has_key || a_person_says_so)
    }

    /// The call, without what only the host should know.
    pub(crate) fn call(&self) -> Call {
        let mut headers = Map::new();
        for (name, value) in &self.headers {
            let shown = match redirect::is_secret(name.as_str()) {
                true => CUT.to_owned(),
                false => String::from_utf8_lossy(value.as_bytes()).into_owned(),
            };
            headers.insert(name.to_string(), Value::String(shown));
        }
        let mut input = json!({ "method": self.method.as_str(), "url": self.url.to_string() });
        if !headers.is_empty() {
            input["headers"] = Value::Object(headers);
        }
        if let Some(data) = self.payload.shown() {
            input["data"] = Value::String(data);
        }
        Call::new("http", input)
    }

    /// The first hop.
    pub(super) fn hop(&self) -> Hop {
        Hop {
            method: self.method.clone(),
            url: self.url.clone(),
            headers: self.headers.clone(),
            with_payload: !matches!(self.payload, Payload::Nothing),
        }
    }
}

/// Reads a method: any word of letters, in capitals.
pub(crate) fn parse_method(text: &str) -> Result<Method, String> {
    let is_word = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
    let method = is_word.then(|| text.to_ascii_uppercase().parse().ok()).flatten();
    // A tunnel has no answer that could be passed on.
    let method = method.filter(|method| *method != Method::CONNECT);
    method.ok_or_else(|| "a method is a word such as GET, HEAD, POST, PUT, PATCH or DELETE".to_owned())
}

/// Reads an address that can be asked.
pub(crate) fn parse_url(text: &str) -> Result<Uri, String> {
    let is_web = ["http://", "https://"]
        .iter()
        .any(|start| text.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start)));
    if !is_web {
        return Err(match text.split_once("://") {
            Some((other, _)) => format!("only http and https are spoken, not {other}"),
            None => "it must begin with http:// or https://".to_owned(),
        });
    }
    if let Some(odd) = text.chars().find(|sign| !sign.is_ascii_graphic()) {
        return Err(format!("{odd:?} must be percent-encoded in a URL (a space is %20)"));
    }
    let url: Uri = text.parse().map_err(|error| format!("{error}"))?;
    url.host().filter(|host| !host.is_empty()).ok_or("it names no host")?;
    match has_sound_place(&url) {
        true => Ok(url),
        false => Err("its port is no number from 1 to 65535".to_owned()),
    }
}

/// Reads `Name: value`.
pub(crate) fn parse_header(text: &str) -> Result<Header, String> {
    let (name, value) = text.split_once(':').ok_or("a header looks like 'Name: value'")?;
    let name: HeaderName =
        name.trim().parse().map_err(|_| format!("{:?} is no name of a header", name.trim()))?;
    if name == "content-length" || name == "transfer-encoding" {
        return Err(format!("{name} follows from what is sent, and is set by itself"));
    }
    let value = HeaderValue::from_bytes(value.trim().as_bytes())
        .map_err(|_| format!("the value of {name} holds a control character"))?;
    Ok(Header { name, value })
}

/// An address without its user and password, and the header that says the same.
fn without_login(url: Uri) -> (Uri, Option<HeaderValue>) {
    let authority = url.authority().map(|authority| authority.as_str().to_owned()).unwrap_or_default();
    let Some((login, host)) = authority.rsplit_once('@') else { return (url, None) };
    let login = percent_decoded(login);
    let login = if login.contains(&b':') { login } else { [&login[..], b":"].concat() };
    let header = HeaderValue::from_str(&format!("Basic {}", base64(&login))).ok();
    let rest = url.path_and_query().map_or("/", |rest| rest.as_str());
    let plain = format!("{}://{host}{rest}", url.scheme_str().unwrap_or("http")).parse();
    (plain.unwrap_or(url), header)
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| u8::from_str_radix(str::from_utf8(code).ok()?, 16).ok());
        match (first, code) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                rest = &after[2..];
            }
            (first, _) => {
                decoded.push(*first);
                rest = after;
            }
        }
    }
    decoded
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let number = group.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte))
            << (8 * (3 - group.len()));
        for at in 0..4 {
            match at <= group.len() {
                true => text.push(char::from(SIGNS[(number >> (18 - 6 * at) & 63) as usize])),
                false => text.push('='),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_cannot_be_asked_is_refused_with_the_reason() {
        let check = |text: &str, why: &str| {
            let refused = parse_url(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        };
        check("a.example/x", "http://");
        check("/x", "http://");
        check("ftp://a.example/x", "ftp");
        check("http:///x", "");
        check("http://a.example/a b", "%20");
        check("http://a.example/ü", "percent-encoded");
        check("http://a.example:port/", "port");
        check("http://me@a.example:99999/", "port");
        check("", "");
        assert!(parse_url("http://[::1]:8080/x?y=1").is_ok());
    }

    #[test]
    fn a_header_is_a_name_and_a_value() {
        let check = |text: &str, why: &str| assert!(parse_header(text).unwrap_err().contains(why), "{text}");
        check("no colon", "Name: value");
        check("b ad: x", "no name");
        check(": x", "no name");
        check("X: a\nb", "control character");
        check("Content-Length: 3", "set by itself");
        assert_eq!(parse_header("X-A:  b: c ").unwrap().value, "b: c");
    }

    #[test]
    fn a_login_in_the_address_becomes_a_header() {
        let check = |url: &str, plain: &str, header: Option<&str>| {
            let (found, login) = without_login(url.parse().unwrap());
            assert_eq!(found.to_string(), plain, "{url}");
            assert_eq!(login.as_ref().map(|login| login.to_str().unwrap()), header, "{url}");
        };
        check("http://a.example/x", "http://a.example/x", None);
        check(
            "http://martin:secret@a.example:81/x?y",
            "http://a.example:81/x?y",
            Some("Basic bWFydGluOnNlY3JldA=="),
        );
        check("http://me@a.example", "http://a.example/", Some("Basic bWU6"));
        check("http://a%40b:c%3Ad@a.example/", "http://a.example/", Some("Basic YUBiOmM6ZA=="));
    }

    #[test]
    fn the_record_of_a_request_holds_none_of_its_secrets() {
        let headers = ["Authorization: Bearer abc", "X-Api-Key: k3y", "Accept: text/plain"];
        let headers: Vec<Header> = headers.iter().map(|header| parse_header(header).unwrap()).collect();
        let url = "https://me:pw@a.example/x".parse().unwrap();
        let request =
            Request::new(Method::POST, url, &headers, Payload::Bytes(b"a=1".to_vec()), Content::Form);
        let expected = json!({
            "method": "POST", "url": "https://a.example/x", "data": "a=1",
            "headers": { "authorization": "…", "x-api-key": "…", "accept": "text/plain",
                "content-type": "application/x-www-form-urlencoded" },
        });
        assert_eq!(request.call(), Call::new("http", expected));
    }
}
