//! `POST /admin/v1/users/{uuid}/dca-codes`

use std::sync::Arc;

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Created, Endpoint};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::users::UUID;
use crate::platform::error::{Denial, Error, Result};
use crate::platform::settings::Deposits;
use crate::tenancy::tenants::Tenant;
use crate::trading::catalogue::{Catalogue, Crypto};
use crate::trading::dca::{
    Frequency, INTENDED_AMOUNT_MAX, NAME_CHARS_MAX, Plan, PlanRow, code, is_name,
};
use crate::users::account::{self, RowLock};
use rampart_types::{ClientId, CurrencyCode, DestinationTag, UserId, UserKey, WalletAddress};

/// The bank of test clients: nobody pays to it.
const SANDBOX_BANK: [&str; 3] = ["Sandbox Bank", "NL77SAND0000000001", "SANDNL2A"];

/// `POST /admin/v1/users/{uuid}/dca-codes`
pub struct OpenPlan;

impl Endpoint for OpenPlan {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/users/{uuid}/dca-codes";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Support];
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Open a savings plan for a user",
        details: "Deposits under its code buy as they arrive. 409 while no bank account for \
                  deposits is configured.",
        path: &[UUID],
        body: Shape::of::<NewPlan>(),
        request: r#"{"cryptoCurrency": "BTC",
            "walletAddress": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "name": "Ada's plan",
            "intendedAmount": 5000, "frequency": "monthly"}"#,
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, NewPlan);
    type Response = Created<Plan>;

    fn read(input: &Input, _: &Operator) -> Result<(String, NewPlan)> {
        let plan = strict::body(input)?;
        Ok((input.param("uuid").to_owned(), plan))
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (uuid, plan): (String, NewPlan),
    ) -> Result<Created<Plan>> {
        let owner = Owner::find(core, &uuid).await?;
        let catalogue = Arc::clone(&core.snapshots.current().catalogue);
        let (currency, wallet, tag) = plan.destination(&catalogue)?;
        plan.check(&owner.tenant)?;
        let [bank_name, bank_iban, bank_bic] = bank(core, &owner.tenant)?;
        let code = code::new(&core.clock).map_err(Error::from)?;
        let mut tx = core.db.begin().await?;
        // An erasure finds the plan's name, or the plan is not opened any more.
        let key = UserKey { client: owner.client, user: owner.user };
        if !account::lock(&mut tx, key, RowLock::NoKeyUpdate).await? {
            return Err(Denial::not_found("user").into());
        }
        let row = PlanRow {
            code: code.clone(),
            through_partner: plan.partner.is_some(),
            crypto_currency: currency.as_str().to_owned(),
            wallet_address: wallet.as_str().to_owned(),
            destination_tag: tag.as_ref().map(ToString::to_string),
            bank_name: bank_name.to_owned(),
            bank_iban: bank_iban.to_owned(),
            bank_bic: bank_bic.to_owned(),
            name: plan.name,
            intended_amount: plan.intended_amount,
            frequency: plan.frequency,
            hidden: false,
            created_at: core.clock.now(),
        };
        let row = row.insert(&mut tx, key).await?;
        let detail = json!({"code": code, "cryptoCurrency": currency});
        let target = owner.user.to_string();
        operator.record(&mut tx, core, "dca.open", &target, detail).await?;
        tx.commit().await?;
        Ok(Created(row.plan(&catalogue, &owner.tenant.name)?))
    }
}

/// A savings plan, for the OpenAPI document.
const EXAMPLE: &str = r#"{
    "code": "7K2M9QXT4B8D", "apiClientName": null, "cryptoCurrency": "BTC",
    "walletAddress": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "destinationTag": null,
    "bankName": "Sandbox Bank", "bankIban": "NL77SAND0000000001", "bankBic": "SANDNL2A",
    "name": "Ada's plan", "intendedAmount": 5000, "frequency": "monthly", "hidden": false,
    "createdAt": "2026-03-01T14:00:00Z",
    "targetCurrency": {
        "code": "BTC", "ticker": "BTC", "name": "Bitcoin",
        "caip19": "bip122:000000000019d6689c085ae165831e93/slip44:0"
    }
}"#;

/// A savings plan to be opened.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "NewDcaPlan")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NewPlan {
    /// Code of the crypto currency that is bought.
    crypto_currency: String,
    /// The address that coins go to, in the form of its chain.
    wallet_address: String,
    /// An integer for XRP, a string otherwise; null or left out without one.
    #[schemars(with = "Option<DestinationTag>")]
    #[serde(default)]
    destination_tag: Value,
    /// Slug or name of the user's own partner, if the plan is opened through it.
    partner: Option<String>,
    /// At most 255 characters.
    name: Option<String>,
    /// In cents; shown, never acted on.
    intended_amount: Option<i64>,
    /// `weekly`, `monthly`, `quarterly` or `half_yearly`; shown, never acted on.
    frequency: Option<String>,
}

/// The user that a plan is opened for.
struct Owner {
    client: ClientId,
    user: UserId,
    tenant: Arc<Tenant>,
}

impl Owner {
    async fn find(core: &Core, uuid: &str) -> Result<Self> {
        let unknown = || Denial::not_found("user");
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
        Ok(Self { client, user, tenant })
    }
}

impl NewPlan {
    /// The currency, the address and the tag that coins go to.
    fn destination(
        &self,
        catalogue: &Catalogue,
    ) -> Result<(CurrencyCode, WalletAddress, Option<DestinationTag>), Denial> {
        let currency = self.crypto_currency.parse().ok();
        let currency = currency.and_then(|code: CurrencyCode| catalogue.currencies.get(&code));
        let (currency, crypto): (_, &Crypto) = currency
            .and_then(|currency| Some((currency.code(), currency.crypto.as_ref()?)))
            .ok_or_else(|| Denial::unprocessable("cryptoCurrency: not one of the catalogue"))?;
        let wallet = WalletAddress::parse(crypto.chain, &self.wallet_address)
            .map_err(|error| Denial::unprocessable(format!("walletAddress: {error}")))?;
        let tag = DestinationTag::read(crypto.tag_kind(), &self.destination_tag)
            .map_err(|error| Denial::unprocessable(format!("destinationTag: {error}")))?;
        Ok((currency, wallet, tag))
    }

    fn check(&self, tenant: &Tenant) -> Result<(), Denial> {
        let fits = |name: &str| name == &*tenant.slug || name == tenant.name;
        if self.partner.as_deref().is_some_and(|name| !fits(name)) {
            return Err(Denial::unprocessable("partner: the user is another partner's"));
        }
        if self.name.as_deref().is_some_and(|name| !is_name(name)) {
            let reason = format!("name: at most {NAME_CHARS_MAX} characters, none of control");
            return Err(Denial::unprocessable(reason));
        }
        let amounts = 1..=INTENDED_AMOUNT_MAX;
        if self.intended_amount.is_some_and(|amount| !amounts.contains(&amount)) {
            return Err(Denial::unprocessable("intendedAmount: a whole number above zero"));
        }
        let known = |name: &str| {
            Frequency::from_name(name).is_some_and(|known| known != Frequency::Biweekly)
        };
        if self.frequency.as_deref().is_some_and(|name| !known(name)) {
            return Err(Denial::unprocessable(
                "frequency: weekly, monthly, quarterly or half_yearly",
            ));
        }
        Ok(())
    }
}

/// Name, IBAN and BIC of the account that deposits go to.
fn bank<'a>(core: &'a Core, tenant: &Tenant) -> Result<[&'a str; 3], Denial> {
    match &core.settings.deposits {
        _ if tenant.is_test() => Ok(SANDBOX_BANK),
        Some(Deposits { bank_name, iban, bic }) => Ok([bank_name, iban, bic]),
        None => Err(Denial::conflict("no bank account for deposits is configured (deposits)")),
    }
}
