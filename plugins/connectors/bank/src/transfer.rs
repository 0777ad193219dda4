//! A transfer as a file names it, checked before any file does.

use rampart_statement::Line;
use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::Number;

use crate::account::{NAME_CHARS_MAX, latin, valid_iban};
use crate::settings::Settings;

/// Longest text for the recipient, in characters: the bound of SEPA.
const REFERENCE_CHARS_MAX: usize = 140;

/// The purpose of a transfer, which its id begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The money of a sale.
    Sale,
    /// A payment that is given back.
    Refund,
}

/// The id of a command's transfer: a letter and the 32 digits of the command's id, at most 35
/// characters, which is the bound of `EndToEndId`. The same for good.
pub(crate) fn end_to_end_id(purpose: Purpose, command: &str) -> String {
    let letter = match purpose {
        Purpose::Sale => 'T',
        Purpose::Refund => 'R',
    };
    format!("{letter}{}", command.replace('-', ""))
}

/// The purpose and the command of an id that has the form of ours.
pub(crate) fn command_of(end_to_end_id: &str) -> Option<(Purpose, String)> {
    let (purpose, digits) = match end_to_end_id.split_at_checked(1)? {
        ("T", digits) => (Purpose::Sale, digits),
        ("R", digits) => (Purpose::Refund, digits),
        _ => return None,
    };
    if digits.len() != 32 || !digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    Some((purpose, parts.join("-")))
}

/// A transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) end_to_end_id: String,
    /// In whole units of the account's currency.
    pub(crate) amount: Decimal,
    pub(crate) name: String,
    pub(crate) iban: String,
    /// Text for the recipient; may be empty.
    pub(crate) reference: String,
}

/// The body of `transfer.send`.
#[derive(Deserialize)]
pub(crate) struct SendBody {
    amount: Number,
    currency: String,
    iban: Option<String>,
    name: Option<String>,
    reference: Option<String>,
}

/// The body of `payment.refund`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RefundBody {
    amount: Number,
    currency: String,
    /// The reference of the payment that is given back.
    pub(crate) provider_reference: String,
}

impl Transfer {
    /// The transfer of a sale's money.
    ///
    /// # Errors
    /// The reason for which no bank would carry it out.
    pub(crate) fn of_sale(
        settings: &Settings,
        command: &str,
        body: &SendBody,
    ) -> Result<Self, String> {
        Self::new(
            settings,
            end_to_end_id(Purpose::Sale, command),
            &body.amount,
            &body.currency,
            body.name.as_deref(),
            body.iban.as_deref(),
            body.reference.as_deref(),
        )
    }

    /// The transfer that gives a payment back to its payer.
    ///
    /// # Errors
    /// The reason for which no bank would carry it out.
    pub(crate) fn of_refund(
        settings: &Settings,
        command: &str,
        body: &RefundBody,
        payment: &Line,
    ) -> Result<Self, String> {
        Self::new(
            settings,
            end_to_end_id(Purpose::Refund, command),
            &body.amount,
            &body.currency,
            Some(&payment.name),
            Some(&payment.iban),
            Some(&payment.reference),
        )
    }

    fn new(
        settings: &Settings,
        end_to_end_id: String,
        amount: &Number,
        currency: &str,
        name: Option<&str>,
        iban: Option<&str>,
        reference: Option<&str>,
    ) -> Result<Self, String> {
        let account = &settings.account;
        account.takes(currency)?;
        let amount = Decimal::from_str_exact(amount.as_str());
        let amount = amount.map_err(|_| "the amount is no decimal".to_owned())?.normalize();
        let decimals = account.decimals();
        if amount <= Decimal::ZERO || amount.scale() > u32::from(decimals) {
            return Err(format!("the amount is not above zero with at most {decimals} decimals"));
        }
        let most = settings.transfers.amount_max;
        if amount > most {
            return Err(format!("the amount is above transfers.amount_max, {most}"));
        }
        let iban = valid_iban(iban.unwrap_or_default()).ok_or("the recipient has no valid IBAN")?;
        if iban == account.iban {
            return Err("the recipient is the account itself".to_owned());
        }
        if !account.reaches(&iban) {
            return Err("the recipient's IBAN is of no country of SEPA".to_owned());
        }
        let name = latin(name.unwrap_or_default(), NAME_CHARS_MAX);
        let name = name.ok_or("the recipient has no name")?;
        let reference = latin(reference.unwrap_or_default(), REFERENCE_CHARS_MAX);
        Ok(Self { end_to_end_id, amount, name, iban, reference: reference.unwrap_or_default() })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    pub(crate) const COMMAND: &str = "0199a000-0000-7000-8000-00000000000a";

    pub(crate) fn settings() -> Settings {
        toml::from_str(
            "folder = \"/nowhere\"\n[edge]\nurl = \"http://127.0.0.1:1\"\n\
             token = { file = \"/nowhere\" }\n[account]\nname = \"Rampart & Co\"\n\
             iban = \"NL02ABNA0123456789\"\n[transfers]\namount_max = \"1000\"\n",
        )
        .unwrap()
    }

    fn sale(member: &str, value: serde_json::Value) -> Result<Transfer, String> {
        let mut body = json!({"orderId": 1_742_980_455_013_377_u64, "amount": 93.1, "currency": "EUR",
            "method": "bankTransfer", "iban": "NL58 ABNA 0000 0000 01", "name": "Zoë Ada",
            "reference": "1742980455013377"});
        body[member] = value;
        let body = serde_json::from_value(body).unwrap();
        Transfer::of_sale(&settings(), COMMAND, &body)
    }

    #[test]
    fn a_transfer_is_spelled_as_banks_read_it() {
        let transfer = sale("method", json!("bankTransfer")).unwrap();
        let expected = Transfer {
            end_to_end_id: format!("T{}", COMMAND.replace('-', "")),
            amount: Decimal::new(931, 1),
            name: "Zoe Ada".to_owned(),
            iban: "NL58ABNA0000000001".to_owned(),
            reference: "1742980455013377".to_owned(),
        };
        assert_eq!(transfer, expected);
        assert!(transfer.end_to_end_id.len() <= 35);
        assert_eq!(command_of(&transfer.end_to_end_id), Some((Purpose::Sale, COMMAND.to_owned())));
    }

    #[test]
    fn a_transfer_that_no_bank_carries_out_is_refused_by_its_reason() {
        for (member, value, reason) in [
            ("currency", json!("USD"), "the account is in EUR"),
            ("amount", json!(0), "the amount is not above zero"),
            ("amount", json!(-5), "the amount is not above zero"),
            ("amount", json!(0.005), "the amount is not above zero"),
            ("amount", json!(1000.01), "the amount is above transfers.amount_max"),
            ("iban", json!(null), "the recipient has no valid IBAN"),
            ("iban", json!("NL59ABNA0000000001"), "the recipient has no valid IBAN"),
            ("iban", json!("NL02ABNA0123456789"), "the recipient is the account itself"),
            ("iban", json!("TR330006100519786457841326"), "the recipient's IBAN is of no country"),
            ("name", json!(null), "the recipient has no name"),
            ("name", json!("&&"), "the recipient has no name"),
        ] {
            let refused = sale(member, value.clone()).unwrap_err();
            assert!(refused.starts_with(reason), "{member} {value}: {refused}");
        }
    }

    #[test]
    fn a_transfer_in_another_currency_than_euros_reaches_any_country() {
        let mut settings = settings();
        "CHF".clone_into(&mut settings.account.currency);
        let body = json!({"amount": 1, "currency": "CHF", "iban": "TR330006100519786457841326",
            "name": "Ada", "reference": null});
        let body = serde_json::from_value(body).unwrap();
        assert!(Transfer::of_sale(&settings, COMMAND, &body).is_ok());
        let swiss = sale("iban", json!("CH9300762011623852957"));
        assert!(swiss.is_ok(), "{swiss:?}");
    }

    #[test]
    fn an_amount_has_the_decimals_of_its_currency() {
        let mut settings = settings();
        for (currency, amount, is_good) in [
            ("JPY", json!(100), true),
            ("JPY", json!(100.5), false),
            ("KWD", json!(1.234), true),
            ("CHF", json!(1.234), false),
        ] {
            currency.clone_into(&mut settings.account.currency);
            let body = json!({"amount": amount, "currency": currency,
                "iban": "NL58 ABNA 0000 0000 01", "name": "Ada", "reference": null});
            let body = serde_json::from_value(body).unwrap();
            let transfer = Transfer::of_sale(&settings, COMMAND, &body);
            assert_eq!(transfer.is_ok(), is_good, "{amount} {currency}: {transfer:?}");
        }
    }

    #[test]
    fn only_ids_of_our_form_name_a_command() {
        let id = end_to_end_id(Purpose::Refund, COMMAND);
        assert_eq!(command_of(&id), Some((Purpose::Refund, COMMAND.to_owned())));
        for text in ["", "T", "T12", "é1", &id[1..], &id.to_uppercase(), &format!("{id}0")] {
            assert_eq!(command_of(text), None, "{text}");
        }
    }
}
