//! A count of tokens that stops retry storms. It knows no time: at an agent's pace, rates would never bind.

/// The numbers a budget lives by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetRules {
    /// A full budget.
    pub max: u32,
    /// What a success gives back.
    pub regain: u32,
    /// How much of a failure's cost the retry gives back that healed it, beyond that.
    pub refund_percent: u8,
}

/// The tokens left for one session, tool and host. The caller keeps one for each, and a store may save it as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The tokens left, never more than the rules' `max`.
    pub tokens: u32,
}

impl Budget {
    /// Makes a full budget.
    pub const fn full(rules: &BudgetRules) -> Budget {
        Budget { tokens: rules.max }
    }

    /// Takes the cost of a failure. A failure that says nothing about the far side costs nothing.
    #[must_use]
    pub const fn failed(self, cost: u32) -> Budget {
        Budget { tokens: self.tokens.saturating_sub(cost) }
    }

    /// Gives back what a success is worth; `healed` is the cost of the failure that it made up for, nothing for a first attempt.
    #[must_use]
    pub fn succeeded(self, healed: u32, rules: &BudgetRules) -> Budget {
        let refund = u64::from(healed) * u64::from(rules.refund_percent) / 100;
        let back = rules.regain.saturating_add(u32::try_from(refund).unwrap_or(u32::MAX));
        Budget { tokens: self.tokens.saturating_add(back).min(rules.max) }
    }

    /// Says whether a retry may be made: not at half or below, so that first attempts are still paid for.
    pub const fn allows_retry(self, rules: &BudgetRules) -> bool {
        self.tokens > rules.max / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: BudgetRules = BudgetRules { max: 100, regain: 2, refund_percent: 50 };

    #[test]
    fn retries_end_at_half_and_return_with_the_first_success() {
        let half = (0..5).fold(Budget::full(&RULES), |budget, _| budget.failed(10));
        assert_eq!(half, Budget { tokens: 50 });
        assert!(!half.allows_retry(&RULES));
        assert!(half.succeeded(0, &RULES).allows_retry(&RULES));
    }

    #[test]
    fn a_budget_is_neither_overdrawn_nor_overfilled() {
        assert_eq!(Budget { tokens: 3 }.failed(20), Budget { tokens: 0 });
        assert_eq!(Budget { tokens: 99 }.succeeded(0, &RULES), Budget { tokens: 100 });
        assert_eq!(Budget { tokens: 99 }.succeeded(u32::MAX, &RULES), Budget { tokens: 100 });
    }

    #[test]
    fn a_retry_that_helped_gives_back_what_the_rules_say_of_what_was_lost() {
        assert_eq!(Budget { tokens: 60 }.succeeded(20, &RULES), Budget { tokens: 72 });
    }
}
