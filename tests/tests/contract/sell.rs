//! Selling: getting a user ready, and sales until they are paid out.

mod onboarding;
