//! The checks that must be passed before coins leave: which of them an order waits for, in words,
//! and the pages on which its user passes them, and meets the other requirements of the verification.
//!
//! `payout_gate` and `transfer_gate` in the database decide what is open, for the payout and for what is
//! shown alike.

pub(crate) mod check_links;
pub(crate) mod link;
pub mod page;
pub(crate) mod requirement;

use std::collections::BTreeMap;

use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use rampart_types::{ClientId, OrderKey, UserKey};

/// A check that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// The user has not agreed to the privacy statement.
    Registration,
    /// The user is disabled or gone.
    User,
    /// The user's identity.
    Identity,
    /// The AMLD5 questions.
    Amld5,
    /// The DAC8 declaration.
    Tax,
    /// The residential address.
    Address,
    /// The account that pays or is paid is not, or not any more, known to be the user's.
    Account,
    /// The unhosted wallet of an order above 1000 EUR (Regulation (EU) 2023/1113, article 14(5)).
    /// One in another currency counts by its worth in that of limits, as `payout_gate` has it.
    Wallet,
    /// The provider has not answered.
    Screening,
    /// An operator has to decide.
    ScreeningReview,
}

/// A check in words.
struct Texts {
    /// The name in the database, and of its page.
    name: &'static str,
    /// The code in `orderNotCompletedReasons`.
    code: &'static str,
    description: &'static str,
    solution: &'static str,
    /// True if the user passes it, on a page.
    is_users: bool,
}

const fn texts(
    name: &'static str,
    code: &'static str,
    description: &'static str,
    solution: &'static str,
    is_users: bool,
) -> Texts {
    Texts { name, code, description, solution, is_users }
}

impl Hold {
    /// Every one.
    pub(crate) const ALL: [Self; 10] = [
        Self::Registration,
        Self::User,
        Self::Identity,
        Self::Amld5,
        Self::Tax,
        Self::Address,
        Self::Account,
        Self::Wallet,
        Self::Screening,
        Self::ScreeningReview,
    ];

    #[expect(clippy::too_many_lines, reason = "a table, and one row a check")]
    const fn texts(self) -> Texts {
        match self {
            Self::Registration => texts(
                "registration",
                "010",
                "The user's registration is not completed.",
                "The user agrees to the privacy statement.",
                true,
            ),
            Self::User => texts(
                "user",
                "016",
                "The user is disabled.",
                "Support enables the user, or gives the payment back.",
                false,
            ),
            Self::Identity => texts(
                "identity",
                "011",
                "The user's identity is not verified.",
                "The user shows an identity document.",
                true,
            ),
            Self::Amld5 => texts(
                "amld5",
                "012",
                "The AMLD5 questions are not answered.",
                "The user answers the questions.",
                true,
            ),
            Self::Tax => texts(
                "tax",
                "013",
                "The DAC8 declaration is missing.",
                "The user declares the tax residency.",
                true,
            ),
            Self::Address => texts(
                "address",
                "014",
                "The user's residential address is not known.",
                "The user gives the address.",
                true,
            ),
            Self::Account => texts(
                "account",
                "015",
                "The bank account or card is not verified as the user's, or is disabled.",
                "The user verifies the account, or support enables it.",
                true,
            ),
            Self::Wallet => texts(
                "wallet",
                "021",
                "The wallet is unhosted and the amount is above 1000 EUR.",
                "The user proves to own the wallet, by a signed message.",
                true,
            ),
            Self::Screening => texts(
                "screening",
                "022",
                "The wallet or the user is being screened.",
                "The screening ends by itself.",
                false,
            ),
            Self::ScreeningReview => texts(
                "screening-review",
                "023",
                "The screening of the wallet or the user needs a review.",
                "Support decides.",
                false,
            ),
        }
    }

    /// The name in the database, and of its page.
    pub(crate) const fn name(self) -> &'static str {
        self.texts().name
    }

    /// The code in `orderNotCompletedReasons`.
    pub(crate) const fn code(self) -> &'static str {
        self.texts().code
    }

    /// The check in words.
    pub(crate) const fn description(self) -> &'static str {
        self.texts().description
    }

    /// The way to pass it, in words.
    pub(crate) const fn solution(self) -> &'static str {
        self.texts().solution
    }

    /// True if the user passes it, on a page.
    pub(crate) const fn is_users(self) -> bool {
        self.texts().is_users
    }

    /// True if an operator has to act. A screening that runs needs nobody.
    pub(crate) const fn is_operators(self) -> bool {
        matches!(self, Self::User | Self::ScreeningReview)
    }

    /// The check of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hold| hold.name() == name)
    }

    /// The open checks of an order.
    pub(crate) async fn of_order(conn: &mut Connection, key: OrderKey) -> Result<Vec<Self>> {
        let names = sqlx::query_scalar!(
            "select holds from payout_gate($1, $2, 'none')",
            key.client.uuid(),
            key.order.number(),
        )
        .fetch_optional(conn)
        .await?;
        read(names.flatten())
    }

    /// The open checks of sales, by their numbers.
    pub(crate) async fn of_sales(
        conn: &mut Connection,
        client: ClientId,
        sales: &[i64],
    ) -> Result<BTreeMap<i64, Vec<Self>>> {
        let rows = sqlx::query!(
            r#"
            select s.number as "number!", g.holds as "holds?" from unnest($2::bigint[]) s (number)
            cross join transfer_gate($1, s.number, 'none') g
            "#,
            client.uuid(),
            sales,
        )
        .fetch_all(conn)
        .await?;
        rows.into_iter().map(|row| Ok((row.number, read(row.holds)?))).collect()
    }

    /// The open checks of a user, without what a disabled one is refused for.
    pub(crate) async fn of_user(core: &Core, key: UserKey) -> Result<Vec<Self>> {
        let names = sqlx::query_scalar!(
            "select holds from user_checks($1, $2)",
            key.client.uuid(),
            key.user.uuid()
        )
        .fetch_one(&core.db)
        .await?;
        Ok(read(names)?.into_iter().filter(|hold| *hold != Self::User).collect())
    }
}

/// The checks of these names; both a wallet and its user may be screened.
///
/// # Errors
/// When there is none of a name.
pub(crate) fn read(names: Option<Vec<String>>) -> Result<Vec<Hold>> {
    let mut holds = Vec::new();
    for name in names.unwrap_or_default() {
        let hold = Hold::from_name(&name).ok_or_else(|| Error::invariant("read an open check"))?;
        if !holds.contains(&hold) {
            holds.push(hold);
        }
    }
    Ok(holds)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_codes_lead_back_to_their_checks() {
        let codes: BTreeSet<_> = Hold::ALL.map(Hold::code).into();
        assert_eq!(codes.len(), Hold::ALL.len());
        for hold in Hold::ALL {
            assert_eq!(Hold::from_name(hold.name()), Some(hold));
        }
        assert_eq!(Hold::from_name(""), None);
    }

    #[test]
    fn a_check_is_named_once() {
        let names = ["identity", "screening", "screening"].map(str::to_owned).to_vec();
        assert_eq!(read(Some(names)).unwrap(), [Hold::Identity, Hold::Screening]);
        assert_eq!(read(None).unwrap(), []);
        assert!(read(Some(vec!["nonsense".to_owned()])).is_err());
    }
}
