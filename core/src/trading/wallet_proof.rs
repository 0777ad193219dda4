//! Proofs that an unhosted wallet is its user's: a message signed by the wallet's key, the partner's
//! signed assertion, or an operator's act. The first one counts, and all of its evidence is kept.

pub(crate) mod challenge;
pub(crate) mod signature;

use rust_decimal::Decimal;

use crate::Core;
use crate::money::connectors::payouts::command_payout;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::trading::catalogue::Catalogue;
use crate::trading::limits;
use rampart_types::{CurrencyCode, OrderKey};

/// Largest amount in EUR for which an unhosted wallet needs no proof.
const UNPROVEN_FIAT_MAX: Decimal = Decimal::ONE_THOUSAND;
/// Reason in the evidence of a signature.
const SIGNED: &str = "the wallet's key has signed the message";
/// Actor in the evidence of a signature.
const USER: &str = "user";

/// A proof of an order's wallet.
#[derive(Clone, Copy, Debug)]
pub enum Proof<'a> {
    /// A message signed by the wallet's key.
    Signature {
        /// The message.
        message: &'a str,
        /// The signature as sent.
        signature: &'a str,
    },
    /// The partner's assertion.
    Partner {
        /// Its slug.
        slug: &'a str,
        /// Its reason.
        reason: &'a str,
    },
    /// An operator's act.
    Operator {
        /// The name.
        name: &'a str,
        /// The reason.
        reason: &'a str,
    },
}

impl<'a> Proof<'a> {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Signature { .. } => "signature",
            Self::Partner { .. } => "partner",
            Self::Operator { .. } => "operator",
        }
    }

    /// Author and reason.
    const fn author(&self) -> (&'a str, &'a str) {
        match *self {
            Self::Signature { .. } => (USER, SIGNED),
            Self::Partner { slug, reason } => (slug, reason),
            Self::Operator { name, reason } => (name, reason),
        }
    }
}

/// True if an unhosted wallet needs a proof for this amount of a fiat currency: by its worth of now in
/// the currency of limits unless it is in EUR, by its number without a rate. The function `payout_gate`
/// of the database has the same.
pub(crate) fn is_needed(
    core: &Core,
    catalogue: &Catalogue,
    fiat: Decimal,
    currency: CurrencyCode,
) -> bool {
    let worth = match currency {
        CurrencyCode::EURO => None,
        other => limits::worth(core, catalogue, fiat, other),
    };
    worth.unwrap_or(fiat) > UNPROVEN_FIAT_MAX
}

/// Records a proof in the caller's transaction, and commands the order's payout unless it waits for
/// something else. `false` when it was proven before, its wallet is hosted, or it is final: then
/// nothing changes.
pub async fn record(
    conn: &mut Connection,
    core: &Core,
    key: OrderKey,
    proof: Proof<'_>,
) -> Result<bool> {
    let (actor, reason) = proof.author();
    let signed = match proof {
        Proof::Signature { message, signature } => Some((message, signature)),
        Proof::Partner { .. } | Proof::Operator { .. } => None,
    };
    let recorded = sqlx::query!(
        "with proven as ( \
             update buy_order set wallet_proven_at = rampart_now() \
             where client_id = $1 and order_id = $2 and wallet_proven_at is null \
                 and wallet_type = 'unhosted' \
                 and status not in ('completed', 'cancelled', 'refunded') \
             returning client_id, order_id) \
         insert into wallet_proof (client_id, order_id, kind, actor, reason, message, signature, \
             recorded_at) \
         select client_id, order_id, $3, $4, $5, $6, $7, rampart_now() from proven",
        key.client.uuid(),
        key.order.number(),
        proof.kind(),
        actor,
        reason,
        signed.map(|(message, _)| message),
        signed.map(|(_, signature)| signature),
    )
    .execute(&mut *conn)
    .await?;
    if recorded.rows_affected() == 0 {
        return Ok(false);
    }
    command_payout(conn, core, key).await?;
    Ok(true)
}
