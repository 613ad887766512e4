//! Through whom a request goes, by the variables that all programs know: `http_proxy`, `https_proxy`, `all_proxy`, `no_proxy`,
//! in small or capital letters.

use std::env;

use ureq::Proxy;
use ureq::http::Uri;

/// The proxy for an address, where there is one.
pub(crate) fn for_address(url: &Uri) -> Option<Proxy> {
    // It finds any proxy at all, and reads whom `no_proxy` names; which one serves this scheme is said by the names alone.
    if Proxy::try_from_env()?.is_no_proxy(url) {
        return None;
    }
    let own = match url.scheme_str() {
        Some("https") => ["https_proxy", "HTTPS_PROXY"],
        _ => ["http_proxy", "HTTP_PROXY"],
    };
    let set = |name: &&str| env::var(name).ok().filter(|value| !value.is_empty());
    let value = own.iter().chain(&["all_proxy", "ALL_PROXY"]).find_map(set)?;
    Proxy::new(&value).ok()
}
