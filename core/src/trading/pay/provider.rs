//! An order's payment at its provider, as the result of its `payment.create` names it.

use rampart_types::OrderKey;
use serde_json::Value;
use sqlx::types::Json;

use super::PaymentState;
use crate::Core;
use crate::money::connectors::bank_transfer::BankTransfer;
use crate::money::connectors::card_element::CardElement;
use crate::money::connectors::commands::{self, result_context};
use crate::money::connectors::provider_page;
use crate::platform::error::Result;

/// An order's payment at its provider.
pub(super) enum ProviderPayment {
    /// No connector was asked.
    NotCommanded,
    /// The sandbox takes it, by the buttons of our page.
    Simulated,
    /// The connector has not answered yet.
    Waits,
    /// It is there.
    At(ProviderForm),
}

/// The place where a payment is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProviderForm {
    /// The provider's form for cards, on our page.
    Card(CardForm),
    /// The provider's page of this URL.
    Page(String),
    /// A bank, by a transfer to this account.
    Transfer(BankTransfer),
    /// In a way that the connector has not named.
    Elsewhere,
}

/// A provider's form for cards, for one payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CardForm {
    /// The provider's token for the payment, good for nothing else.
    pub(super) client_token: String,
    /// URL of the provider's script.
    pub(super) script_url: String,
    /// The account's public key.
    pub(super) public_key: String,
    /// Origins that the page lets in.
    pub(super) sources: Vec<String>,
}

impl ProviderPayment {
    /// The payment that a connector was asked to make for an order.
    pub(super) async fn find(core: &Core, OrderKey { client, order }: OrderKey) -> Result<Self> {
        let row = sqlx::query!(
            r#"
            select c.command_id, c.state, c.sealed_result,
                coalesce(c.connector = 'sandbox', false) as "is_simulated!",
                (select k.card_element from connector k where k.name = c.connector)
                    as "card_element: Json<CardElement>"
            from command c
            where c.client_id = $1 and c.order_id = $2 and c.kind = 'payment.create'
            "#,
            client.uuid(),
            order.number(),
        )
        .fetch_optional(&core.db)
        .await?;
        let Some(row) = row else { return Ok(Self::NotCommanded) };
        if row.is_simulated {
            return Ok(Self::Simulated);
        }
        if row.state != "done" {
            return Ok(Self::Waits);
        }
        let context = result_context(client.uuid(), row.command_id);
        let result =
            row.sealed_result.map(|sealed| commands::open(&core.cipher(client), &context, &sealed));
        let result = result.transpose()?.unwrap_or_default();
        Ok(Self::At(ProviderForm::of(&result["result"], row.card_element.map(|Json(one)| one))))
    }

    /// True once it can be made at the provider; `None` if no connector was asked.
    pub(super) const fn is_ready(&self) -> Option<bool> {
        match self {
            Self::NotCommanded | Self::Simulated => None,
            Self::Waits => Some(false),
            Self::At(_) => Some(true),
        }
    }

    /// The state of a pending order's payment, of a partner of this mode.
    pub(super) fn state(self, is_test: bool) -> PaymentState {
        match self {
            Self::Waits => PaymentState::Preparing,
            Self::At(form) => PaymentState::AtProvider(form),
            Self::Simulated => PaymentState::Payable,
            // It is older than the sandbox's commands.
            Self::NotCommanded if is_test => PaymentState::Payable,
            Self::NotCommanded => PaymentState::NoProvider,
        }
    }
}

impl ProviderForm {
    /// The place that a connector's result names.
    fn of(result: &Value, element: Option<CardElement>) -> Self {
        if let (Some(token), Some(element)) = (result["clientToken"].as_str(), element) {
            return Self::Card(CardForm {
                client_token: token.to_owned(),
                sources: element.sources(),
                script_url: element.script_url,
                public_key: element.public_key,
            });
        }
        if let Some(account) = BankTransfer::of(result) {
            return Self::Transfer(account);
        }
        let url = result["redirectUrl"].as_str();
        url.filter(|url| provider_page::is_allowed(url))
            .map_or(Self::Elsewhere, |url| Self::Page(url.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_names_the_place_and_the_operator_the_script() {
        let element = || CardElement {
            script_url: "https://js.example.com/".to_owned(),
            public_key: "pk_1".to_owned(),
            origins: Vec::new(),
        };
        let token = json!({"clientToken": "t", "scriptUrl": "https://evil.example/"});
        let ProviderForm::Card(form) = ProviderForm::of(&token, Some(element())) else {
            panic!("no form for cards");
        };
        assert_eq!((&*form.client_token, &*form.public_key), ("t", "pk_1"));
        assert_eq!(form.sources, ["https://js.example.com"]);
        assert_eq!(ProviderForm::of(&token, None), ProviderForm::Elsewhere);
        let page = |url: &str| ProviderForm::of(&json!({ "redirectUrl": url }), Some(element()));
        assert_eq!(
            page("https://psp.example/1"),
            ProviderForm::Page("https://psp.example/1".into())
        );
        assert_eq!(page("javascript:alert(1)"), ProviderForm::Elsewhere);
        let account = json!({"name": "Acme", "iban": "NL02ABNA0123456789", "reference": "7"});
        let account = |iban: &str| {
            let mut told = account.clone();
            told["iban"] = json!(iban);
            ProviderForm::of(&json!({ "bankTransfer": told }), None)
        };
        assert!(matches!(account("NL02ABNA0123456789"), ProviderForm::Transfer(_)));
        assert_eq!(account("NL03ABNA0123456789"), ProviderForm::Elsewhere);
    }
}
