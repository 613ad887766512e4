//! Makes connections: straight to the server or through the proxy that the variables of this machine name, and encrypted
//! where the address says so.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::proxy::{SocksV4, SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower_service::Service;
use ureq::{Proxy, ProxyProtocol};

use crate::http::{self, Mishap};

/// After so long of silence the other side is asked whether it is still there.
const ALIVE: Duration = Duration::from_secs(60);

/// Nobody could be asked.
#[derive(Debug, thiserror::Error)]
#[error("{words}")]
pub(super) struct Unreachable {
    pub(super) words: String,
}

/// Both directions of a connection, whatever it goes through.
trait Wire: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Wire for T {}

/// A connection that is ready to be used.
pub(super) struct Stream(Box<dyn Wire>);

/// Makes connections to one server.
#[derive(Clone)]
pub(super) struct Connector {
    tcp: HttpConnector,
    tls: Tls,
    proxy_for: Arc<ProxyFor>,
    limit: Duration,
}

/// Says through whom an address is reached.
type ProxyFor = dyn Fn(&Uri) -> Result<Option<Proxy>, ureq::Error> + Send + Sync;

/// To read what the machine trusts takes a while, so it is done when somebody has to be trusted.
#[derive(Clone, Default)]
struct Tls(Arc<OnceCell<TlsConnector>>);

impl Connector {
    pub(super) fn new(limit: Duration, proxy_for: Arc<ProxyFor>) -> Connector {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(ALIVE));
        tcp.set_connect_timeout(Some(limit));
        Connector { tcp, tls: Tls::default(), proxy_for, limit }
    }

    async fn connect(self, url: Uri) -> Result<Stream, Unreachable> {
        match timeout(self.limit, self.open(&url)).await {
            Ok(opened) => opened,
            Err(_) => Err(Unreachable {
                words: format!(
                    "connection timed out: {} did not answer in {} ms",
                    place(&url),
                    self.limit.as_millis()
                ),
            }),
        }
    }

    async fn open(&self, url: &Uri) -> Result<Stream, Unreachable> {
        let proxy = (self.proxy_for)(url);
        let stream = match proxy.map_err(|error| Unreachable { words: error.to_string() })? {
            None => Stream(Box::new(
                self.tcp.clone().call(url.clone()).await.map_err(|error| unreachable(&error, url))?,
            )),
            Some(proxy) => self.through(&proxy, url).await?,
        };
        match url.scheme_str() {
            Some("https") => self.tls.encrypt(stream, url).await,
            _ => Ok(stream),
        }
    }

    /// Through a proxy, which hears nothing but with whom we want to speak.
    async fn through(&self, proxy: &Proxy, url: &Uri) -> Result<Stream, Unreachable> {
        let way = ToProxy { tcp: self.tcp.clone(), tls: self.tls.clone() };
        let login =
            proxy.username().map(|name| (name.to_owned(), proxy.password().unwrap_or_default().to_owned()));
        let at = |scheme: &str| {
            let address = format!("{scheme}://{}:{}", proxy.host(), proxy.port());
            address.parse::<Uri>().map_err(|_| Unreachable { words: "invalid proxy url".to_owned() })
        };
        // A port that is not said would be taken for that of an encrypted connection.
        let target = with_port(url);
        let refused = |error: &(dyn Error + 'static)| Unreachable {
            words: format!("connect tunnel failed: {}", root(error)),
        };
        match proxy.protocol() {
            ProxyProtocol::Http | ProxyProtocol::Https => {
                let scheme = if proxy.protocol() == ProxyProtocol::Https { "https" } else { "http" };
                let mut tunnel = Tunnel::new(at(scheme)?, way);
                if let Some((name, password)) = login {
                    let value = format!("Basic {}", STANDARD.encode(format!("{name}:{password}")));
                    let value = HeaderValue::from_str(&value)
                        .map_err(|_| Unreachable { words: "invalid proxy url".to_owned() })?;
                    tunnel = tunnel.with_auth(value);
                }
                tunnel.call(target).await.map_err(|error| refused(&error))
            }
            ProxyProtocol::Socks4 | ProxyProtocol::Socks4A => {
                let socks = SocksV4::new(at("http")?, way).local_dns(proxy.resolve_target());
                { socks }.call(target).await.map_err(|error| refused(&error))
            }
            _ => {
                let mut socks = SocksV5::new(at("http")?, way).local_dns(proxy.resolve_target());
                if let Some((name, password)) = login {
                    socks = socks.with_auth(name, password);
                }
                socks.call(target).await.map_err(|error| refused(&error))
            }
        }
    }
}

impl Tls {
    async fn encrypt(&self, stream: Stream, url: &Uri) -> Result<Stream, Unreachable> {
        let failed =
            |why: String| Unreachable { words: format!("TLS handshake with {} failed: {why}", place(url)) };
        let connector = self.0.get_or_try_init(|| async {
            let reading = tokio::task::spawn_blocking(http::trusted_config);
            let mut config = reading.await.map_err(|error| failed(error.to_string()))?.map_err(failed)?;
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Ok(TlsConnector::from(Arc::new(config)))
        });
        let connector = connector.await?;
        let host = url.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host).map_err(|error| failed(error.to_string()))?;
        let encrypted = connector.connect(name, TokioIo::new(stream)).await;
        let encrypted = encrypted.map_err(|error| failed(error.to_string()))?;
        Ok(Stream(Box::new(TokioIo::new(encrypted))))
    }
}

/// The way to a proxy, which may be encrypted itself.
#[derive(Clone)]
struct ToProxy {
    tcp: HttpConnector,
    tls: Tls,
}

type Connecting = Pin<Box<dyn Future<Output = Result<Stream, Unreachable>> + Send>>;

impl Service<Uri> for ToProxy {
    type Response = Stream;
    type Error = Unreachable;
    type Future = Connecting;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Unreachable>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, proxy: Uri) -> Connecting {
        let ToProxy { mut tcp, tls } = self.clone();
        Box::pin(async move {
            let stream = tcp.call(proxy.clone()).await.map_err(|error| unreachable(&error, &proxy))?;
            let stream = Stream(Box::new(stream));
            match proxy.scheme_str() {
                Some("https") => tls.encrypt(stream, &proxy).await,
                _ => Ok(stream),
            }
        })
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = Unreachable;
    type Future = Connecting;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Unreachable>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, url: Uri) -> Connecting {
        Box::pin(self.clone().connect(url))
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl Write for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, parts)
    }
}

/// Host and port, for people.
fn place(url: &Uri) -> String {
    format!("{}:{}", url.host().unwrap_or_default(), http::port(url))
}

fn with_port(url: &Uri) -> Uri {
    let scheme = url.scheme_str().unwrap_or("http");
    format!("{scheme}://{}/", place(url)).parse().unwrap_or_else(|_| url.clone())
}

/// The connection was not made: in the words that `unstuck http` has for it.
fn unreachable(error: &(dyn Error + 'static), url: &Uri) -> Unreachable {
    let words = match io_error(error) {
        Some(error) => Mishap::unconnected(error, url),
        None => format!("could not connect to {}: {}", place(url), root(error)),
    };
    Unreachable { words }
}

/// What the operating system said, where it was that.
pub(super) fn io_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// The innermost cause.
pub(super) fn root<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost
}
