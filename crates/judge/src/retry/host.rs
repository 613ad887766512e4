//! A budget of retries that everybody who asks one host shares, whatever process, session or tool they are. It knows time: a host
//! that is down is asked again in vain only so often in a while, however many ask.

use std::time::Duration;

use crate::shell::Script;

/// The numbers a host's budget lives by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostRules {
    /// So many retries ...
    pub retries: u32,
    /// ... in so long, of all who ask.
    pub per: Duration,
}

/// What was spent of it, in thousandths of a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostBudget {
    /// What is spent, and not regained by time.
    pub spent: u64,
    /// When that was so, in milliseconds.
    pub at: u64,
}

/// A retry in thousandths.
const ONE: u64 = 1000;

impl HostBudget {
    /// What is left of what was spent, at this moment.
    fn spent_at(self, now: u64, rules: &HostRules) -> u64 {
        let passed = now.saturating_sub(self.at);
        let per = u64::try_from(rules.per.as_millis()).unwrap_or(u64::MAX).max(1);
        let regained = u128::from(passed) * u128::from(rules.retries) * u128::from(ONE) / u128::from(per);
        self.spent.saturating_sub(u64::try_from(regained).unwrap_or(u64::MAX))
    }

    /// Takes one retry. Where none is left, it says after how long there is one. A call for which a person chose `chosen` retries may
    /// make as many, as far as others have not made them.
    pub fn take(self, chosen: u32, now: u64, rules: &HostRules) -> Result<HostBudget, Duration> {
        let spent = self.spent_at(now, rules);
        let most = u64::from(rules.retries.max(chosen)) * ONE;
        if spent + ONE <= most {
            return Ok(HostBudget { spent: spent + ONE, at: now });
        }
        let short = spent + ONE - most;
        let per = u64::try_from(rules.per.as_millis()).unwrap_or(u64::MAX);
        let wait = u128::from(short) * u128::from(per) / u128::from((u64::from(rules.retries) * ONE).max(1));
        Err(Duration::from_millis(u64::try_from(wait).unwrap_or(u64::MAX).max(1)))
    }

    /// The host answered well: what this call had taken is given back, and one more.
    #[must_use]
    pub fn succeeded(self, retries_made: u32, now: u64, rules: &HostRules) -> HostBudget {
        let spent = self.spent_at(now, rules).saturating_sub((u64::from(retries_made) + 1) * ONE);
        HostBudget { spent, at: now }
    }
}

/// The longest name of a host.
const LONGEST: usize = 200;

/// Whom a call asks, so that everybody who asks the same shares one budget: the host with its port that its line names first, or
/// the server that offers the tool. Nothing where it names none.
pub fn host(line: &str, tool: &str) -> Option<String> {
    if let Some(server) = tool.strip_prefix("mcp__").and_then(|rest| rest.split("__").next()) {
        return Some(format!("mcp:{server}")).filter(|host| host.len() <= LONGEST);
    }
    let authority = line.split_once("://").map(|(scheme, rest)| {
        let ends =
            |sign: char| sign.is_whitespace() || sign.is_control() || "/?#'\"`()<>,;\\|&".contains(sign);
        let authority = rest.split(ends).next().unwrap_or_default();
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host).to_lowercase();
        let usual = if scheme.ends_with("https") { ":443" } else { ":80" };
        host.strip_suffix(usual).unwrap_or(&host).to_owned()
    });
    let named = authority.filter(|host| !host.is_empty() && !host.contains('$'));
    let host = named.or_else(|| Script::parse(line).url_hosts().into_iter().next())?;
    (host.len() <= LONGEST).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: HostRules = HostRules { retries: 10, per: Duration::from_secs(60) };

    #[test]
    fn so_many_retries_in_a_while_and_no_more_whoever_asks() {
        let mut budget = HostBudget::default();
        let granted = (0..100)
            .filter(|_| match budget.take(0, 5_000, &RULES) {
                Ok(taken) => {
                    budget = taken;
                    true
                }
                Err(_) => false,
            })
            .count();
        assert_eq!(granted, 10);
        let wait = budget.take(0, 5_000, &RULES).unwrap_err();
        assert_eq!(wait, Duration::from_secs(6));
        assert!(budget.take(0, 5_000 + 6_000, &RULES).is_ok());
        let hour = (0..3600_u64).fold((budget, 0), |(budget, granted), second| {
            match budget.take(0, 5_000 + second * 1000, &RULES) {
                Ok(taken) => (taken, granted + 1),
                Err(_) => (budget, granted),
            }
        });
        assert!((590..=600).contains(&hour.1), "{}", hour.1);
    }

    #[test]
    fn an_answer_gives_back_and_a_clock_that_goes_back_takes_nothing() {
        let spent = (0..10).fold(HostBudget::default(), |budget, _| budget.take(0, 9_000, &RULES).unwrap());
        assert!(spent.take(0, 9_000, &RULES).is_err() && spent.take(0, 1_000, &RULES).is_err());
        assert!(spent.succeeded(2, 9_000, &RULES).take(0, 9_000, &RULES).is_ok());
        // As many as a person chose for one call.
        assert!(spent.take(12, 9_000, &RULES).is_ok());
    }

    #[test]
    fn a_host_is_known_with_its_port_whatever_asks_it() {
        let check = |line: &str, tool: &str, expected: Option<&str>| {
            assert_eq!(host(line, tool).as_deref(), expected, "{line}");
        };
        check("GET http://127.0.0.1:8080/x?y=z", "http", Some("127.0.0.1:8080"));
        check("curl -fsS 'https://me:x@API.example:8443/v1' | jq .", "Bash", Some("api.example:8443"));
        check("curl -fsS https://api.example:443/v1", "Bash", Some("api.example"));
        check("curl localhost:3000/health", "Bash", Some("localhost"));
        check("git fetch git@forge.example:a/b.git", "Bash", Some("forge.example"));
        check("mcp__tide__now", "mcp__tide__now", Some("mcp:tide"));
        check("npm ci", "Bash", None);
        check("curl https://$HOST/x", "Bash", None);
        check("", "", None);
    }
}
