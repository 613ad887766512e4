//! A count of tokens that stops retry storms. It knows no time: at an agent's pace, rates would never bind.

/// The numbers a budget lives by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetRules {
    /// A full budget.
    pub max: u32,
    /// What a success gives back.
    pub regain: u32,
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

    /// Gives back what a success is worth.
    #[must_use]
    pub fn succeeded(self, rules: &BudgetRules) -> Budget {
        Budget { tokens: self.tokens.saturating_add(rules.regain).min(rules.max) }
    }

    /// Says whether a retry may be made: not at half or below, so that first attempts are still paid for.
    pub const fn allows_retry(self, rules: &BudgetRules) -> bool {
        self.tokens > rules.max / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: BudgetRules = BudgetRules { max: 100, regain: 2 };

    #[test]
    fn retries_end_at_half_and_return_with_the_first_success() {
        let half = (0..5).fold(Budget::full(&RULES), |budget, _| budget.failed(10));
        assert_eq!(half, Budget { tokens: 50 });
        assert!(!half.allows_retry(&RULES));
        assert!(half.succeeded(&RULES).allows_retry(&RULES));
    }

    #[test]
    fn a_budget_is_neither_overdrawn_nor_overfilled() {
        assert_eq!(Budget { tokens: 3 }.failed(20), Budget { tokens: 0 });
        assert_eq!(Budget { tokens: 99 }.succeeded(&RULES), Budget { tokens: 100 });
    }
}
