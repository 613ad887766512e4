//! Sends HTTP requests.

use std::io::Read;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use ureq::config::Config;
use ureq::http::{HeaderMap, Method, Request, Uri};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Body};

use super::aside;
use crate::annotations::Annotations;
use crate::context::ToolContext;
use crate::failure::Failure;
use crate::tool::Tool;

/// How long a request may take where nobody says.
const LIMIT: Duration = Duration::from_secs(30);
/// How much of an answer is shown.
const BODY_MAX: u64 = 128 * 1024;
const REDIRECTS_MAX: u32 = 5;

/// `http_fetch`: sends a request and shows the answer.
///
/// A status of 400 or more is a failure, with what the server said and how long it asks to wait. Redirects are followed, up to
/// five; a body is never sent on to another address, nor are `Authorization` and `Cookie`; other headers are. Certificates are checked against those of the
/// machine. No proxy is used.
///
/// ```
/// use serde_json::json;
/// use unstuck::tools::Http;
/// use unstuck::{ToolCall, Toolbox};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), unstuck::BuildError> {
/// let tools = Toolbox::builder().tool(Http::new().public_only()).build()?;
/// let result = tools.call(ToolCall::new("http_fetch", json!({ "url": "http://127.0.0.1/admin" }))).await;
/// assert!(result.error().is_some_and(|error| error.contains("not on the public internet")));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Http {
    limit: Duration,
    reach: Reach,
    repeatable: bool,
    trust: Arc<OnceLock<TlsConfig>>,
}

/// Who may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Anybody,
    Public,
}

impl Http {
    /// One that may ask everybody.
    pub fn new() -> Http {
        Http { limit: LIMIT, reach: Reach::Anybody, repeatable: false, trust: Arc::default() }
    }

    /// Refuses addresses that are not of the public internet: this machine, its network, and what clouds keep for themselves.
    /// It is the address that counts, on each redirect anew, and not the name.
    #[must_use]
    pub fn public_only(self) -> Http {
        Http { reach: Reach::Public, ..self }
    }

    /// Every request may be sent twice, whatever its method: questions to a model, searches by POST.
    #[must_use]
    pub fn repeatable(self) -> Http {
        Http { repeatable: true, ..self }
    }

    /// How long a request may take, redirects and all; 30 seconds otherwise.
    #[must_use]
    pub fn timeout(self, limit: Duration) -> Http {
        Http { limit, ..self }
    }

    /// A client for one request: to give it up is to close its connection, and nobody else's.
    fn agent(&self) -> Agent {
        let config = Agent::config_builder()
            .timeout_global(Some(self.limit))
            .max_redirects(REDIRECTS_MAX)
            .max_idle_connections(0)
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .proxy(None)
            .tls_config(self.trust.get_or_init(trust).clone())
            .user_agent(concat!("unstuck/", env!("CARGO_PKG_VERSION")))
            .build();
        Agent::with_parts(
            config,
            DefaultConnector::default(),
            Addresses { reach: self.reach, system: DefaultResolver::default() },
        )
    }
}

impl Default for Http {
    fn default() -> Http {
        Http::new()
    }
}

/// What is to be sent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FetchArgs {
    /// The address, beginning with `http://` or `https://`.
    url: String,
    /// The method; GET without it.
    method: Option<String>,
    /// Headers to send.
    #[serde(default)]
    headers: std::collections::BTreeMap<String, String>,
    /// What to send.
    body: Option<String>,
}

/// What came back.
#[derive(Debug, Serialize)]
pub struct Fetched {
    status: u16,
    headers: Value,
    body: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

impl Tool for Http {
    type Args = FetchArgs;
    type Output = Fetched;

    fn name(&self) -> &str {
        "http_fetch"
    }

    fn description(&self) -> &str {
        "Sends an HTTP request and shows the answer: status, headers and the text of the body. Long bodies are cut."
    }

    fn annotations(&self) -> Annotations {
        // What it does to the world depends on the method, and the judge reads that.
        let annotations = Annotations::new().timeout(self.limit.saturating_add(Duration::from_secs(5)));
        if self.repeatable { annotations.idempotent() } else { annotations.by_arguments() }
    }

    async fn call(&self, args: FetchArgs, context: ToolContext) -> Result<Fetched, Failure> {
        let request = request(&args)?;
        // A further attempt after a time limit is made to get more time.
        let http = self.clone().timeout(self.limit.saturating_mul(context.attempt()));
        let (agent, made) = tokio::sync::oneshot::channel();
        let fetched = aside::run(&context, move |_| {
            let client = http.agent();
            let _nobody_waits = agent.send(client.clone());
            fetch(&client, request)
        });
        let hung_up = async {
            let client = made.await;
            context.cancelled().await;
            client.into_iter().for_each(Agent::shutdown);
        };
        tokio::pin!(fetched);
        tokio::select! {
            biased;
            fetched = &mut fetched => fetched,
            () = hung_up => Err(aside::given_up()),
        }
    }
}

fn request(args: &FetchArgs) -> Result<Request<String>, Failure> {
    let url: Uri = args
        .url
        .parse()
        .map_err(|error| Failure::invalid(format!("`{}` is no address: {error}", args.url)))?;
    if !matches!(url.scheme_str(), Some("http" | "https")) || url.host().is_none() {
        return Err(Failure::invalid(format!(
            "`{}` must begin with http:// or https:// and name a host",
            args.url
        )));
    }
    let method = args.method.as_deref().unwrap_or("GET").to_ascii_uppercase();
    let method = Method::from_bytes(method.as_bytes())
        .map_err(|_| Failure::invalid(format!("`{method}` is no method")))?;
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in &args.headers {
        request = request.header(name, value);
    }
    request
        .body(args.body.clone().unwrap_or_default())
        .map_err(|error| Failure::invalid(format!("the headers make no sense: {error}")))
}

fn fetch(client: &Agent, request: Request<String>) -> Result<Fetched, Failure> {
    let (method, url) = (request.method().clone(), request.uri().clone());
    let has_body = !request.body().is_empty() || [Method::POST, Method::PUT, Method::PATCH].contains(&method);
    let answer = if has_body { client.run(request) } else { client.run(request.map(|_| ())) };
    let answer = answer.map_err(|error| broken(&error))?;
    let status = answer.status();
    let headers = answer.headers().clone();
    let (body, notes) = shown(answer.into_body())?;
    let fetched = Fetched { status: status.as_u16(), headers: told(&headers), body, notes };
    if status.as_u16() < 400 {
        return Ok(fetched);
    }
    let words = format!("HTTP {status} for {method} {url}");
    let failure = Failure::expected(words)
        .http_status(status.as_u16())
        .data(json!({ "status": fetched.status, "headers": fetched.headers, "body": fetched.body }));
    Err(match wait_of(&headers) {
        Some(wait) => failure.retry_after(wait),
        None => failure,
    })
}

/// The text of a body, and what is not seen of it.
fn shown(body: Body) -> Result<(String, Vec<String>), Failure> {
    let mut bytes = Vec::new();
    body.into_reader().take(BODY_MAX + 1).read_to_end(&mut bytes).map_err(|error| broken(&error.into()))?;
    let mut notes = Vec::new();
    if bytes.len() as u64 > BODY_MAX {
        bytes.truncate(usize::try_from(BODY_MAX).unwrap_or_default());
        notes.push(format!("the body is longer: only its first {BODY_MAX} bytes are shown"));
    }
    if bytes.contains(&0) {
        notes.push("the body is binary and is not shown".to_owned());
        return Ok((String::new(), notes));
    }
    Ok((String::from_utf8_lossy(&bytes).into_owned(), notes))
}

/// The headers; of several with one name, all.
fn told(headers: &HeaderMap) -> Value {
    let mut fields = Map::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        let field = fields.entry(name.as_str()).or_insert_with(|| Value::String(String::new()));
        *field = match field.as_str() {
            Some(before) if !before.is_empty() => format!("{before}, {value}").into(),
            Some(_) | None => value.into(),
        };
    }
    Value::Object(fields)
}

/// How long the server asks to wait: in seconds, or until a date.
fn wait_of(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("retry-after")?.to_str().ok()?.trim();
    let until = || httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::now()).ok();
    text.parse().ok().map(Duration::from_secs).or_else(until)
}

/// The request got no answer.
fn broken(error: &ureq::Error) -> Failure {
    match error {
        ureq::Error::Timeout(what) => Failure::timed_out(format!("request timed out: {what}")),
        ureq::Error::HostNotFound => Failure::unexpected("could not resolve host: name or service not known"),
        ureq::Error::Other(cause) if cause.is::<NotPublic>() => Failure::expected(cause.to_string()),
        other => Failure::unexpected(other.to_string()),
    }
}

/// Certificates are checked against those of this machine, which know a company's own authority, too.
fn trust() -> TlsConfig {
    let found = rustls_native_certs::load_native_certs().certs;
    let roots: Vec<Certificate<'static>> =
        found.iter().map(|cert| Certificate::from_der(cert.as_ref()).to_owned()).collect();
    TlsConfig::builder()
        .root_certs(RootCerts::from(roots.into_iter()))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build()
}

/// Finds the addresses of a name, and lets only those pass that may be asked.
#[derive(Debug)]
struct Addresses {
    reach: Reach,
    system: DefaultResolver,
}

/// Nobody else is behind a name.
#[derive(Debug, thiserror::Error)]
#[error("permission denied: {host} is not on the public internet, and only that may be asked")]
struct NotPublic {
    host: String,
}

impl Resolver for Addresses {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.system.resolve(uri, config, timeout)?;
        match self.reach {
            Reach::Anybody => Ok(found),
            // One that is not public among them is enough: who answers so is not to be trusted with the others.
            Reach::Public if found.iter().all(|address| is_public(address.ip())) => Ok(found),
            Reach::Public => {
                let host = uri.host().unwrap_or_default().to_owned();
                Err(ureq::Error::Other(Box::new(NotPublic { host })))
            }
        }
    }
}

/// Is it an address that anybody in the world can have?
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_broadcast()
                || v4.is_documentation()
                || v4.is_multicast()
                || a == 0
                || a >= 240
                || (a == 100 && (64..128).contains(&b))
                || (a == 192 && b == 0 && c == 0)
                || (a == 198 && (18..20).contains(&b)))
        }
        IpAddr::V6(v6) => match embedded(v6) {
            Some(v4) => is_public(v4),
            None => {
                let first = v6.segments()[0];
                // Only this eighth of all addresses is given out; documentation is in it.
                first & 0xe000 == 0x2000 && !(first == 0x2001 && v6.segments()[1] == 0x0db8)
            }
        },
    }
}

/// The old address that a new one stands for: mapped, translated (NAT64) or tunnelled (6to4).
fn embedded(address: Ipv6Addr) -> Option<IpAddr> {
    let parts = address.segments();
    let v4 = |high: u16, low: u16| {
        let bits = (u32::from(high) << 16) | u32::from(low);
        IpAddr::V4(bits.into())
    };
    match parts {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_anybody_in_the_world_can_reach_is_public() {
        let check = |public: bool, addresses: &[&str]| {
            for text in addresses {
                assert_eq!(is_public(text.parse().unwrap()), public, "{text}");
            }
        };
        check(
            true,
            &[
                "1.1.1.1",
                "8.8.8.8",
                "172.32.0.1",
                "100.128.0.1",
                "2606:4700::1111",
                "::ffff:1.1.1.1",
                "64:ff9b::808:808",
            ],
        );
        check(
            false,
            &[
                "127.0.0.1",
                "10.0.0.1",
                "172.16.0.1",
                "192.168.1.1",
                "169.254.169.254",
                "0.0.0.0",
                "100.64.0.1",
            ],
        );
        check(
            false,
            &["198.18.0.1", "192.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "203.0.113.1"],
        );
        check(
            false,
            &[
                "::1",
                "::",
                "fe80::1",
                "fc00::1",
                "ff02::1",
                "2001:db8::1",
                "::ffff:127.0.0.1",
                "::ffff:10.0.0.1",
            ],
        );
        check(false, &["64:ff9b::a00:1", "2002:7f00:1::", "2002:a00:1::1"]);
    }
}
