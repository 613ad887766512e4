//! Through whom a request goes, by the variables that all programs know: `http_proxy`, `https_proxy`, `all_proxy`, `no_proxy`,
//! in small or capital letters.

use std::env;

use ureq::http::Uri;
use ureq::{Error, Proxy};

use super::redirect::has_sound_place;

/// The proxy for an address, where there is one. One that cannot be read is an error: whoever names it does not want to go
/// without.
pub(crate) fn for_address(url: &Uri) -> Result<Option<Proxy>, Error> {
    // It finds any proxy at all, and reads whom `no_proxy` names; which one serves this scheme is said by the names alone.
    if Proxy::try_from_env().is_some_and(|any| any.is_no_proxy(url)) {
        return Ok(None);
    }
    let own = match url.scheme_str() {
        Some("https") => ["https_proxy", "HTTPS_PROXY"],
        _ => ["http_proxy", "HTTP_PROXY"],
    };
    let set = |name: &&str| env::var(name).ok().filter(|value| !value.is_empty());
    let Some(value) = own.iter().chain(&["all_proxy", "ALL_PROXY"]).find_map(set) else { return Ok(None) };
    let proxy = Proxy::new(&value)?;
    // A port that is none would be taken for the usual one.
    let address = if value.contains("://") { value } else { format!("http://{value}") };
    match address.parse::<Uri>() {
        Ok(address) if !has_sound_place(&address) => Err(Error::InvalidProxyUrl),
        Ok(_) | Err(_) => Ok(Some(proxy)),
    }
}
