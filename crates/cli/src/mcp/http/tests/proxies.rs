use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tower_service::Service;
use ureq::Proxy;

use super::super::connector::Connector;

/// What a proxy expects to hear, and what it says then.
type Script = Vec<(Vec<u8>, Vec<u8>)>;

/// Connects to `url` through a proxy that follows a script, and asks who is at the other end.
async fn check(proxy: &str, url: &str, script: Script, expected: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = proxy.replace("HERE", &listener.local_addr().unwrap().to_string());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        for (hears, says) in script {
            let mut heard = vec![0; hears.len()];
            stream.read_exact(&mut heard).await.unwrap();
            assert_eq!(heard.escape_ascii().to_string(), hears.escape_ascii().to_string());
            stream.write_all(&says).await.unwrap();
        }
    });
    let proxies = move |_: &hyper::Uri| Proxy::new(&address).map(Some);
    let mut connector = Connector::new(Duration::from_secs(5), Arc::new(proxies));
    let told = match connector.call(url.parse().unwrap()).await {
        Ok(stream) => {
            let (mut stream, mut text) = (TokioIo::new(stream), String::new());
            stream.write_all(b"?").await.unwrap();
            stream.read_to_string(&mut text).await.unwrap();
            text
        }
        Err(error) => error.to_string(),
    };
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_proxy_is_told_whom_we_want_to_reach() {
    let connect = "CONNECT nowhere.example:80 HTTP/1.1\r\nHost: nowhere.example:80\r\n";
    let hears = |more: &str| format!("{connect}{more}\r\n").into_bytes();
    let welcome = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let there = (b"?".to_vec(), b"hello".to_vec());
    check(
        "http://HERE",
        "http://nowhere.example/mcp",
        vec![(hears(""), welcome.clone()), there.clone()],
        "hello",
    )
    .await;
    let login = "Proxy-Authorization: Basic bWU6cHc=\r\n";
    check(
        "http://me:pw@HERE",
        "http://nowhere.example/mcp",
        vec![(hears(login), welcome), there.clone()],
        "hello",
    )
    .await;
    check(
        "http://HERE",
        "http://nowhere.example/mcp",
        vec![(hears(""), b"HTTP/1.1 502 Bad Gateway\r\n\r\n".to_vec())],
        "connect tunnel failed: tunnel error: unsuccessful",
    )
    .await;
    let socks = vec![
        (b"\x05\x01\x00".to_vec(), b"\x05\x00".to_vec()),
        (
            b"\x05\x01\x00\x03\x0fnowhere.example\x00\x50".to_vec(),
            b"\x05\x00\x00\x01\x7f\0\0\x01\0\0".to_vec(),
        ),
        there,
    ];
    check("socks5h://HERE", "http://nowhere.example/mcp", socks, "hello").await;
}

#[tokio::test]
async fn a_proxy_that_is_not_there_is_named() {
    let nobody = |_: &hyper::Uri| Proxy::new("http://127.0.0.1:1").map(Some);
    let mut connector = Connector::new(Duration::from_secs(5), Arc::new(nobody));
    let error = connector.call("http://nowhere.example/mcp".parse().unwrap()).await.err().unwrap();
    assert_eq!(
        error.to_string(),
        "connect tunnel failed: failed to connect to 127.0.0.1:1: connection refused"
    );
}
