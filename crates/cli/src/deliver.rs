//! Tells somebody of an alert: a program of the user's, or an address on the network. Both get the same line of JSON.
//!
//! A delivery is claimed before it is made, so two processes never make the same at once. One that dies in between leaves it
//! to the next, so an alert may arrive twice: its `id` tells. What an answer says is never obeyed.

use std::time::Duration;

use serde::Serialize;
use unstuck_exec::{Ending, Job, Stream};
use unstuck_store::{AlertRule, DeliveryOutcome, FiredAlert, Recipient, Store};
use unstuck_wire::clean::Cleaner;
use unstuck_wire::time;

use crate::cellar;
use crate::exit::CommandError;
use crate::http::trusting_what_the_machine_trusts;
use crate::lines;
use crate::program_file::on_path;

/// How long a program may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(30);
/// How long an address may take, from looking it up to the end of its answer.
const WEBHOOK_LIMIT: Duration = Duration::from_secs(10);
/// How long nobody else makes a delivery that was claimed: longer than any can take.
const LEASE: Duration = Duration::from_secs(60);
/// The most that is kept of why a delivery failed.
const WHY_MAX: usize = 300;
/// The most that is kept of what a program printed.
const PRINTED_MAX: usize = 2000;

/// An alert as others get it.
#[derive(Debug, Serialize)]
pub(crate) struct WireAlert<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    v: u32,
    /// The same for every delivery of this alert, and for no other alert.
    id: &'a str,
    name: &'a str,
    /// Nothing happened; somebody tries out whether this arrives.
    test: bool,
    at: String,
    at_ms: u64,
    window: String,
    window_ms: u64,
    value: f64,
    text: &'a str,
}

impl<'a> WireAlert<'a> {
    pub(crate) fn new(alert: &'a FiredAlert, test: bool) -> WireAlert<'a> {
        WireAlert {
            kind: "alert",
            v: 1,
            id: &alert.key,
            name: &alert.name,
            test,
            at: time::iso(alert.at),
            at_ms: alert.at,
            window: time::iso(alert.window),
            window_ms: alert.window,
            value: alert.value,
            text: &alert.text,
        }
    }
}

/// What became of the deliveries that were due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Delivered {
    pub(crate) arrived: u64,
    pub(crate) failed: u64,
}

/// Makes all deliveries that are due. Rules are asked for by name, so that neither addresses nor commands are ever stored.
pub(crate) fn all_due(
    store: &mut Store,
    rules: &[AlertRule],
    cleaner: &Cleaner,
) -> Result<Delivered, CommandError> {
    let mut delivered = Delivered::default();
    while let Some(claim) = store.claim_delivery(cellar::now(), LEASE)? {
        let rule = rules.iter().find(|rule| rule.name == claim.alert.name);
        let outcome = match rule {
            Some(rule) => deliver(rule, claim.to, &WireAlert::new(&claim.alert, false), cleaner),
            None => DeliveryOutcome::Hopeless("no rule has this name any more".into()),
        };
        match outcome {
            DeliveryOutcome::Arrived => delivered.arrived += 1,
            DeliveryOutcome::Failed(_) | DeliveryOutcome::Hopeless(_) => delivered.failed += 1,
        }
        store.settle_delivery(&claim, &outcome, cellar::now())?;
    }
    Ok(delivered)
}

/// Makes one delivery.
pub(crate) fn deliver(
    rule: &AlertRule,
    to: Recipient,
    alert: &WireAlert<'_>,
    cleaner: &Cleaner,
) -> DeliveryOutcome {
    let line = lines::json(alert);
    let result = match (to, &rule.command[..], &rule.webhook) {
        (Recipient::Command, [program, args @ ..], _) => run(program, args, line),
        (Recipient::Webhook, _, Some(address)) => post(address, &line),
        (Recipient::Command, [], _) | (Recipient::Webhook, _, None) => {
            return DeliveryOutcome::Hopeless("the rule does not name one any more".into());
        }
    };
    match result {
        Ok(()) => DeliveryOutcome::Arrived,
        Err(why) => {
            // An address often is itself the key to the place behind it.
            let why = rule.webhook.as_ref().map_or(why.clone(), |address| why.replace(&**address, "…"));
            DeliveryOutcome::Failed(cleaner.line(&why, WHY_MAX))
        }
    }
}

fn run(program: &str, args: &[String], line: String) -> Result<(), String> {
    let mut printed = Vec::new();
    let Some(file) = on_path(program) else { return Err(format!("there is no program called {program}")) };
    let job = Job::new(file, args).with_input(line).capture_only().timeout(COMMAND_LIMIT);
    let run = job.run(|stream, bytes| {
        if stream == Stream::Stderr {
            printed.extend_from_slice(bytes);
            let too_much = printed.len().saturating_sub(PRINTED_MAX);
            printed.drain(..too_much);
        }
    });
    let printed = String::from_utf8_lossy(&printed);
    let last = printed.lines().rfind(|line| !line.trim().is_empty());
    let because = last.map(|line| format!(": {}", line.trim())).unwrap_or_default();
    match run.ending {
        Ending::Exited(0) => Ok(()),
        Ending::Exited(code) => Err(format!("{program} exited with {code}{because}")),
        Ending::Signalled(signal) => Err(format!("{program} was ended by signal {signal}{because}")),
        Ending::TimedOut => Err(format!("{program} took longer than {} s", COMMAND_LIMIT.as_secs())),
        Ending::NotFound => Err(format!("there is no program called {program}")),
        Ending::NotExecutable(why) | Ending::NotTried(why) => {
            Err(format!("{program} could not be started: {why}"))
        }
    }
}

fn post(address: &str, line: &str) -> Result<(), String> {
    let mut config = ureq::Agent::config_builder()
        .timeout_global(Some(WEBHOOK_LIMIT))
        // An answer that sends us elsewhere would send the alert to somebody whom the user did not name.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .user_agent(concat!("unstuck/", env!("CARGO_PKG_VERSION")));
    if address.to_ascii_lowercase().starts_with("https:") {
        config = config.tls_config(trusting_what_the_machine_trusts());
    }
    let sent = config.build().new_agent().post(address).content_type("application/json").send(line);
    match sent {
        Ok(answer) if answer.status().is_success() => Ok(()),
        Ok(answer) if answer.status().is_redirection() => {
            Err(format!("answered {}: redirects are not followed", answer.status().as_u16()))
        }
        Ok(answer) => Err(format!("answered {}", answer.status().as_u16())),
        Err(ureq::Error::Timeout(_)) => Err(format!("no answer within {} s", WEBHOOK_LIMIT.as_secs())),
        Err(ureq::Error::HostNotFound) => Err("no such host".to_owned()),
        Err(ureq::Error::BadUri(_)) => Err("the address cannot be used".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
