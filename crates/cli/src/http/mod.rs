//! One HTTP request and what comes of it: sent, redirected, answered, its body passed on. It makes one attempt at a time;
//! whether there is another is not decided here.

mod client;
mod exchange;
mod expected;
mod fetch;
mod interruption;
mod mishap;
mod outlet;
mod payload;
mod proxy;
mod redirect;
mod request;
mod trust;

pub(crate) use expected::Expected;
pub(crate) use fetch::{Answered, Fetch, Wanted};
pub(crate) use mishap::Mishap;
pub(crate) use outlet::Destination;
pub(crate) use payload::Payload;
pub(crate) use proxy::for_address as proxy_for;
pub(crate) use redirect::{port, within_origin};
pub(crate) use request::{Content, Header, Request, parse_header, parse_method, parse_url};
pub(crate) use trust::{trusted_config, trusting_what_the_machine_trusts};
