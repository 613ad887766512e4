//! A request until its answer, over as many redirects as are allowed.

use std::time::{Duration, Instant};

use ureq::http::header::LOCATION;
use ureq::http::{HeaderMap, StatusCode, Uri, Version};
use ureq::{Body, http};

use super::client::Client;
use super::fetch::Wanted;
use super::mishap::{Mishap, Progress};
use super::redirect::{self, Next};
use super::request::Request;

/// The beginning of an answer; its body has not been read.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) version: Version,
    pub(super) headers: HeaderMap,
    /// Who gave it.
    pub(super) url: Uri,
    pub(super) redirects: u32,
    pub(super) body: Body,
}

/// Asks, and goes where it is sent.
pub(super) fn exchange(
    client: &Client,
    request: &Request,
    wanted: &Wanted,
    limit: Option<Duration>,
    begun: Instant,
) -> Result<Answer, Mishap> {
    let mut hop = request.hop();
    let mut redirects = 0;
    loop {
        let left = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(Mishap::timed_out(Progress::Unanswered, begun.elapsed()));
        }
        let payload = match hop.with_payload {
            true => request.payload.open().map_err(|(path, error)| Mishap::unreadable(&path, &error))?,
            false => None,
        };
        let response = client
            .send(&hop, payload, left)
            .map_err(|error| Mishap::of(&error, &hop.url, Progress::Unanswered, begun.elapsed()))?;
        let status = response.status().as_u16();
        let location = response.headers().get(LOCATION).map(|location| location.as_bytes());
        // Whoever names the status of a redirect wants to see it.
        let is_wanted = wanted.expected.as_ref().is_some_and(|expected| expected.allows(status));
        match redirect::next(&hop, status, location.filter(|_| !is_wanted)) {
            Next::There(next) if redirects < wanted.max_redirects => {
                redirects += 1;
                hop = next;
            }
            Next::There(_) if wanted.max_redirects > 0 => {
                return Err(Mishap::broken(format!(
                    "too many redirects: stopped after {redirects} redirects"
                )));
            }
            Next::Nowhere | Next::There(_) => return Ok(answer(response, hop.url, redirects)),
            Next::Astray(why) => return Err(Mishap::broken(why)),
        }
    }
}

fn answer(response: http::Response<Body>, url: Uri, redirects: u32) -> Answer {
    let (head, body) = response.into_parts();
    Answer { status: head.status, version: head.version, headers: head.headers, url, redirects, body }
}
