//! Puts one request on the wire. Redirects are not followed here, and no connection is used twice: an old one may be dead, and
//! then nobody knows whether a request got through.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ureq::config::Config;
use ureq::http::header::CONTENT_LENGTH;
use ureq::http::{Method, Response};
use ureq::tls::TlsConfig;
use ureq::{Agent, Body, ProxyProtocol, SendBody};

use super::payload::Opened;
use super::redirect::Hop;
use super::{proxy, trust};

/// How long it may take until somebody is there to be asked.
pub(super) const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// How long there may be silence.
pub(super) const SILENCE_LIMIT: Duration = Duration::from_secs(300);

/// Who sends requests.
pub(super) struct Client {
    plain: Agent,
    /// To read what the machine trusts takes a while, so it is done when somebody has to be trusted.
    encrypting: Arc<OnceLock<Agent>>,
}

impl Client {
    pub(super) fn new() -> Client {
        Client { plain: config(TlsConfig::default()).new_agent(), encrypting: Arc::default() }
    }

    /// What closes all connections, whoever is using them.
    pub(super) fn hang_up(&self) -> impl FnOnce() + Send + 'static {
        let (plain, encrypting) = (self.plain.clone(), Arc::clone(&self.encrypting));
        move || {
            plain.shutdown();
            encrypting.get().cloned().into_iter().for_each(Agent::shutdown);
        }
    }

    /// Sends it and waits for the beginning of the answer.
    pub(super) fn send(
        &self,
        hop: &Hop,
        payload: Option<Opened>,
        left: Option<Duration>,
    ) -> Result<Response<Body>, ureq::Error> {
        let expects_payload = [Method::POST, Method::PUT, Method::PATCH].contains(&hop.method);
        let nothing = || expects_payload.then(|| Opened { reader: Box::new(io::empty()), length: 0 });
        let payload = payload.or_else(nothing);
        let mut request = ureq::http::Request::new(());
        *request.method_mut() = hop.method.clone();
        *request.uri_mut() = hop.url.clone();
        *request.headers_mut() = hop.headers.clone();
        if let Some(opened) = &payload {
            request.headers_mut().insert(CONTENT_LENGTH, opened.length.into());
        }
        let body = payload.map_or_else(SendBody::none, |opened| SendBody::from_owned_reader(opened.reader));
        let proxy = proxy::for_address(&hop.url)?;
        let encrypts = hop.url.scheme_str() == Some("https")
            || proxy.as_ref().is_some_and(|proxy| proxy.protocol() == ProxyProtocol::Https);
        let agent = match encrypts {
            true => {
                self.encrypting.get_or_init(|| config(trust::trusting_what_the_machine_trusts()).new_agent())
            }
            false => &self.plain,
        };
        let request =
            agent.configure_request(request.map(|()| body)).timeout_global(left).proxy(proxy).build();
        agent.run(request)
    }
}

fn config(trust: TlsConfig) -> Config {
    Agent::config_builder()
        .timeout_connect(Some(CONNECT_LIMIT))
        .timeout_per_read(Some(SILENCE_LIMIT))
        .timeout_per_write(Some(SILENCE_LIMIT))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_idle_connections(0)
        .http_status_as_error(false)
        .allow_non_standard_methods(true)
        .proxy(None)
        .tls_config(trust)
        .user_agent(concat!("unstuck/", env!("CARGO_PKG_VERSION")))
        .build()
}
