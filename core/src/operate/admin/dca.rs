//! Savings plans: `POST /admin/v1/users/{uuid}/dca-codes` opens one and
//! `POST /admin/v1/dca-codes/{code}/deposits` reports what has arrived for it.

use std::sync::Arc;

use http::StatusCode;
use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::{Value, json};

use super::orders::Named;
use super::{Answer, Input, Refused, created, ok};
use crate::Core;
use crate::platform::audit::{self, Entry};
use crate::platform::error::Error;
use crate::platform::settings::Deposits;
use crate::tenancy::tenants::Tenant;
use crate::trading::catalogue::{Catalogue, Crypto};
use crate::trading::dca::deposit::{Deposit, DepositPlan, make_order, quote};
use crate::trading::dca::{FREQUENCIES, INTENDED_AMOUNT_MAX, NAME_CHARS_MAX, code, is_name, plans};
use crate::trading::orders::status::Cause;
use crate::trading::quotes::Side;
use rampart_types::decimal::fits_decimals;
use rampart_types::{
    ClientId, CurrencyCode, DestinationTag, JsonDecimal, OrderId, PartnerReference, TagKind,
    UserId, WalletAddress,
};

/// The bank of test clients: nobody pays to it.
const SANDBOX_BANK: [&str; 3] = ["Sandbox Bank", "NL77SAND0000000001", "SANDNL2A"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NewPlan {
    crypto_currency: String,
    wallet_address: String,
    #[serde(default)]
    destination_tag: Value,
    /// Slug or name of the user's own partner, if the plan is opened through it.
    partner: Option<String>,
    name: Option<String>,
    intended_amount: Option<i64>,
    frequency: Option<String>,
}

/// Whose plan it is to be.
struct Owner {
    client: ClientId,
    user: UserId,
    tenant: Arc<Tenant>,
}

/// Opens a savings plan for a user.
pub(super) async fn open(core: &Arc<Core>, input: Input) -> Answer {
    let plan: NewPlan = input.json()?;
    let owner = owner(core, input.param("uuid")).await?;
    let catalogue = Arc::clone(&core.snapshots.current().catalogue);
    let (currency, wallet, tag) = plan.destination(&catalogue)?;
    plan.check(&owner.tenant)?;
    let [bank_name, bank_iban, bank_bic] = bank(core, &owner.tenant)?;
    let code = code::new(&core.clock).map_err(Error::from)?;
    let mut tx = core.db.begin().await?;
    let row = plans!(
        "insert into dca_plan (client_id, code, user_id, through_partner, crypto_currency, \
         wallet_address, destination_tag, bank_name, bank_iban, bank_bic, name, intended_amount, \
         frequency, created_at) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) returning",
        "",
        owner.client.uuid(),
        code,
        owner.user.uuid(),
        plan.partner.is_some(),
        currency.as_str(),
        wallet.as_str(),
        tag.as_ref().map(ToString::to_string),
        bank_name,
        bank_iban,
        bank_bic,
        plan.name,
        plan.intended_amount,
        plan.frequency,
        core.clock.now(),
    )
    .fetch_one(&mut *tx)
    .await?;
    let detail = json!({"code": code, "cryptoCurrency": currency});
    let target = owner.user.to_string();
    let entry = Entry { actor: input.actor(), action: "dca.open", target: &target, detail };
    audit::record(&mut tx, &core.clock, entry).await?;
    tx.commit().await?;
    created(&row.plan(&catalogue, &owner.tenant.name)?)
}

async fn owner(core: &Core, uuid: &str) -> Result<Owner, Refused> {
    let unknown = || Refused::not_found("user");
    let user: UserId = uuid.parse().map_err(|_| unknown())?;
    let client = sqlx::query_scalar!(
        "select client_id from end_user where user_id = $1 and deleted_at is null",
        user.uuid(),
    )
    .fetch_optional(&core.db)
    .await?
    .map(ClientId::from)
    .ok_or_else(unknown)?;
    let tenant = core.snapshots.current().tenants.get(&client).cloned().ok_or_else(unknown)?;
    Ok(Owner { client, user, tenant })
}

impl NewPlan {
    /// Where the coins are to go.
    fn destination(
        &self,
        catalogue: &Catalogue,
    ) -> Result<(CurrencyCode, WalletAddress, Option<DestinationTag>), Refused> {
        let currency = self.crypto_currency.parse().ok();
        let currency = currency.and_then(|code: CurrencyCode| catalogue.currencies.get(&code));
        let (currency, crypto): (_, &Crypto) = currency
            .and_then(|currency| Some((currency.code(), currency.crypto.as_ref()?)))
            .ok_or_else(|| Refused::unprocessable("cryptoCurrency: not one of the catalogue"))?;
        let wallet = WalletAddress::parse(crypto.chain, &self.wallet_address)
            .map_err(|error| Refused::unprocessable(format!("walletAddress: {error}")))?;
        let kind = if crypto.supports_tag { crypto.chain.tag_kind() } else { TagKind::None };
        let tag = DestinationTag::read(kind, &self.destination_tag)
            .map_err(|error| Refused::unprocessable(format!("destinationTag: {error}")))?;
        Ok((currency, wallet, tag))
    }

    fn check(&self, tenant: &Tenant) -> Result<(), Refused> {
        let fits = |name: &str| name == &*tenant.slug || name == tenant.name;
        if self.partner.as_deref().is_some_and(|name| !fits(name)) {
            return Err(Refused::unprocessable("partner: the user is another partner's"));
        }
        if self.name.as_deref().is_some_and(|name| !is_name(name)) {
            let reason = format!("name: at most {NAME_CHARS_MAX} characters, none of control");
            return Err(Refused::unprocessable(reason));
        }
        let amounts = 1..=INTENDED_AMOUNT_MAX;
        if self.intended_amount.is_some_and(|amount| !amounts.contains(&amount)) {
            return Err(Refused::unprocessable("intendedAmount: a whole number above zero"));
        }
        let known = |name: &str| name != "biweekly" && FREQUENCIES.contains(&name);
        if self.frequency.as_deref().is_some_and(|name| !known(name)) {
            return Err(Refused::unprocessable(
                "frequency: weekly, monthly, quarterly or half_yearly",
            ));
        }
        Ok(())
    }
}

/// Name, IBAN and BIC of the account that deposits go to.
fn bank<'a>(core: &'a Core, tenant: &Tenant) -> Result<[&'a str; 3], Refused> {
    match &core.settings.deposits {
        _ if tenant.is_test() => Ok(SANDBOX_BANK),
        Some(Deposits { bank_name, iban, bic }) => Ok([bank_name, iban, bic]),
        None => Err(Refused::conflict("no bank account for deposits is configured (deposits)")),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Arrived {
    amount: JsonDecimal,
    currency_code: CurrencyCode,
    reference: String,
}

/// Makes an order of a deposit: 201, or 200 when the same deposit was reported before.
pub(super) async fn deposit(core: &Arc<Core>, input: Input) -> Answer {
    let Arrived { amount: JsonDecimal(amount), currency_code: currency, reference } =
        input.json()?;
    if reference.parse::<PartnerReference>().is_err() {
        return Err(Refused::unprocessable("reference: 1 to 255 characters, none of control"));
    }
    let plan = find(core, input.param("code")).await?;
    let deposit = Deposit { amount, currency, reference: &reference };
    if let Some(order) = earlier(core, &plan, &deposit).await? {
        return ok(&shown(core, plan.client, order).await?);
    }
    check(core, &deposit)?;
    let bought = quote(core, &plan, &deposit, &input.head.request_id).await?;
    let mut tx = core.db.begin().await?;
    let Some(order) = make_order(&mut tx, core, &plan, &deposit, &bought).await? else {
        // Another report of the same deposit was faster.
        tx.rollback().await?;
        let order = earlier(core, &plan, &deposit).await?;
        let order = order.ok_or_else(|| Error::broken("find the order of a deposit"))?;
        return ok(&shown(core, plan.client, order).await?);
    };
    let detail = json!({"order": order, "amount": JsonDecimal(amount), "currencyCode": currency,
        "reference": reference});
    let entry = Entry { actor: input.actor(), action: "dca.deposit", target: &plan.code, detail };
    audit::record(&mut tx, &core.clock, entry).await?;
    tx.commit().await?;
    for cause in [Cause::Confirmed, Cause::PaymentReceived] {
        core.metrics.orders.with_label_values(&[cause.as_str()]).inc();
    }
    created(&shown(core, plan.client, order).await?)
}

/// The order that a deposit has become.
async fn shown(core: &Core, client: ClientId, order: OrderId) -> Result<Value, Refused> {
    Named { client, side: Side::Buy, order }.detail(core).await
}

/// A positive amount in whole smallest units of a fiat currency.
fn check(core: &Core, deposit: &Deposit<'_>) -> Result<(), Refused> {
    let snapshot = core.snapshots.current();
    let currency = snapshot.catalogue.currencies.get(&deposit.currency);
    let currency = currency
        .filter(|currency| currency.crypto.is_none())
        .ok_or_else(|| Refused::unprocessable("currencyCode: not a fiat currency we know"))?;
    if deposit.amount <= Decimal::ZERO || !fits_decimals(deposit.amount, currency.scale()) {
        return Err(Refused::unprocessable("amount: above zero, in whole smallest units"));
    }
    Ok(())
}

async fn find(core: &Core, text: &str) -> Result<DepositPlan, Refused> {
    let unknown = || Refused::not_found("savings plan");
    if !code::is_code(text) {
        return Err(unknown());
    }
    let mut rows = sqlx::query!(
        "select client_id, code, user_id, crypto_currency, wallet_address, destination_tag \
         from dca_plan where code = $1 limit 2",
        text,
    )
    .fetch_all(&core.db)
    .await?;
    let row = rows.pop().ok_or_else(unknown)?;
    if !rows.is_empty() {
        return Err(Refused::conflict("several partners have a savings plan with this code"));
    }
    let currency = row.crypto_currency.parse();
    Ok(DepositPlan {
        client: row.client_id.into(),
        code: row.code,
        user: row.user_id.into(),
        crypto_currency: currency.map_err(|e| Error::internal("read a plan's currency", e))?,
        wallet_address: row.wallet_address,
        destination_tag: row.destination_tag,
    })
}

/// The order that a deposit with this reference became before.
///
/// # Errors
/// 409 when that deposit was another one.
async fn earlier(
    core: &Core,
    plan: &DepositPlan,
    deposit: &Deposit<'_>,
) -> Result<Option<OrderId>, Refused> {
    let row = sqlx::query!(
        "select code, amount, currency, order_id from dca_deposit \
         where client_id = $1 and reference = $2",
        plan.client.uuid(),
        deposit.reference,
    )
    .fetch_optional(&core.db)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let same = row.code == plan.code
        && row.amount == deposit.amount
        && row.currency == deposit.currency.as_str();
    if !same {
        let reason = "another deposit has this reference";
        return Err(Refused::new(StatusCode::CONFLICT, reason));
    }
    let order = OrderId::try_from(row.order_id);
    Ok(Some(order.map_err(|e| Error::internal("read a deposit's order", e))?))
}
