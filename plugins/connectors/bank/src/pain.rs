//! A file of transfers: ISO 20022 `pain.001.001.09`.

use chrono::{DateTime, SecondsFormat, Utc};
use quick_xml::escape::escape;
use rust_decimal::Decimal;

use crate::account::{Account, NAME_CHARS_MAX, latin};
use crate::folder::MessageId;
use crate::transfer::Transfer;

const NAMESPACE: &str = "urn:iso:std:iso:20022:tech:xsd:pain.001.001.09";

/// The file's text: one payment of the account to be carried out at once, each transfer booked on its
/// own.
pub(crate) fn message(
    account: &Account,
    transfers: &[Transfer],
    id: &MessageId,
    now: DateTime<Utc>,
) -> String {
    let mut xml = Xml::default();
    xml.text.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let holder = latin(&account.name, NAME_CHARS_MAX).unwrap_or_default();
    let (count, sum) = (transfers.len().to_string(), sum(account, transfers));
    xml.within(&format!("Document xmlns=\"{NAMESPACE}\""), |xml| {
        xml.within("CstmrCdtTrfInitn", |xml| {
            xml.within("GrpHdr", |xml| {
                xml.leaf("MsgId", id.as_str());
                xml.leaf("CreDtTm", &now.to_rfc3339_opts(SecondsFormat::Secs, true));
                xml.leaf("NbOfTxs", &count);
                xml.leaf("CtrlSum", &sum);
                xml.within("InitgPty", |xml| xml.leaf("Nm", &holder));
            });
            xml.within("PmtInf", |xml| {
                xml.leaf("PmtInfId", id.as_str());
                xml.leaf("PmtMtd", "TRF");
                // Each transfer then has a line of its own on the statement.
                xml.leaf("BtchBookg", "false");
                xml.leaf("NbOfTxs", &count);
                xml.leaf("CtrlSum", &sum);
                if account.is_sepa() {
                    xml.within("PmtTpInf", |xml| {
                        xml.within("SvcLvl", |xml| xml.leaf("Cd", "SEPA"))
                    });
                }
                xml.within("ReqdExctnDt", |xml| {
                    xml.leaf("Dt", &now.format("%Y-%m-%d").to_string());
                });
                debtor(xml, account, &holder);
                xml.leaf("ChrgBr", if account.is_sepa() { "SLEV" } else { "SHAR" });
                for transfer in transfers {
                    xml.within("CdtTrfTxInf", |xml| credit(xml, account, transfer));
                }
            });
        });
    });
    xml.text
}

fn debtor(xml: &mut Xml, account: &Account, holder: &str) {
    xml.within("Dbtr", |xml| xml.leaf("Nm", holder));
    xml.within("DbtrAcct", |xml| {
        xml.within("Id", |xml| xml.leaf("IBAN", &account.iban));
        xml.leaf("Ccy", &account.currency);
    });
    xml.within("DbtrAgt", |xml| {
        xml.within("FinInstnId", |xml| match &account.bic {
            Some(bic) => xml.leaf("BICFI", bic),
            None => xml.within("Othr", |xml| xml.leaf("Id", "NOTPROVIDED")),
        });
    });
}

fn credit(xml: &mut Xml, account: &Account, transfer: &Transfer) {
    xml.within("PmtId", |xml| {
        xml.leaf("InstrId", &transfer.end_to_end_id);
        xml.leaf("EndToEndId", &transfer.end_to_end_id);
    });
    xml.within("Amt", |xml| {
        let start = format!("InstdAmt Ccy=\"{}\"", account.currency);
        xml.leaf(&start, &amount(account, transfer.amount));
    });
    xml.within("Cdtr", |xml| xml.leaf("Nm", &transfer.name));
    xml.within("CdtrAcct", |xml| xml.within("Id", |xml| xml.leaf("IBAN", &transfer.iban)));
    if !transfer.reference.is_empty() {
        xml.within("RmtInf", |xml| xml.leaf("Ustrd", &transfer.reference));
    }
}

/// An amount with the decimals of the account's currency.
fn amount(account: &Account, amount: Decimal) -> String {
    let decimals = usize::from(account.decimals());
    format!("{amount:.decimals$}")
}

fn sum(account: &Account, transfers: &[Transfer]) -> String {
    amount(account, transfers.iter().map(|transfer| transfer.amount).sum())
}

/// Elements, indented.
#[derive(Default)]
struct Xml {
    text: String,
    depth: usize,
}

impl Xml {
    /// An element with elements in it. `start` is its name, with attributes that need no escape.
    fn within(&mut self, start: &str, content: impl FnOnce(&mut Self)) {
        self.indent();
        self.text.push_str(&format!("<{start}>\n"));
        self.depth += 1;
        content(self);
        self.depth -= 1;
        self.indent();
        self.text.push_str(&format!("</{}>\n", name(start)));
    }

    /// An element with a text.
    fn leaf(&mut self, start: &str, text: &str) {
        self.indent();
        self.text.push_str(&format!("<{start}>{}</{}>\n", escape(text), name(start)));
    }

    fn indent(&mut self) {
        self.text.extend(std::iter::repeat_n("  ", self.depth));
    }
}

fn name(start: &str) -> &str {
    start.split_once(' ').map_or(start, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;

    use super::*;
    use crate::transfer::tests::{COMMAND, settings};

    #[test]
    fn a_file_names_each_transfer_and_their_sum() {
        let transfer = |cents: i64, name: &str| Transfer {
            end_to_end_id: format!("T{}", COMMAND.replace('-', "")),
            amount: Decimal::new(cents, 2),
            name: name.to_owned(),
            iban: "NL58ABNA0000000001".to_owned(),
            reference: String::new(),
        };
        let transfers = [transfer(9_310, "Zoe Ada"), transfer(5, "O'Neill")];
        let (id, now) = (MessageId::new().unwrap(), Utc.with_ymd_and_hms(2026, 3, 1, 12, 0, 0));
        let account = settings().account;
        let text = message(&account, &transfers, &id, now.unwrap());
        for part in [
            "<NbOfTxs>2</NbOfTxs>",
            "<CtrlSum>93.15</CtrlSum>",
            "<InstdAmt Ccy=\"EUR\">0.05</InstdAmt>",
            "<Nm>Rampart Co</Nm>",
            "<Nm>O&apos;Neill</Nm>",
            "<CreDtTm>2026-03-01T12:00:00Z</CreDtTm>",
            "<Dt>2026-03-01</Dt>",
            "<Cd>SEPA</Cd>",
            "<Id>NOTPROVIDED</Id>",
        ] {
            assert!(text.contains(part), "{part} is missing:\n{text}");
        }
        let other =
            Account { currency: "CHF".to_owned(), bic: Some("UBSWCHZH".to_owned()), ..account };
        let text = message(&other, &transfers, &id, now.unwrap());
        assert!(text.contains("<ChrgBr>SHAR</ChrgBr>") && !text.contains("SEPA"), "{text}");
        assert!(text.contains("<BICFI>UBSWCHZH</BICFI>"));
        let whole = Account { currency: "JPY".to_owned(), ..other };
        let transfers = [Transfer { amount: Decimal::from(500), ..transfer(0, "Ada") }];
        let text = message(&whole, &transfers, &id, now.unwrap());
        assert!(text.contains("<InstdAmt Ccy=\"JPY\">500</InstdAmt>"), "{text}");
        assert!(text.contains("<CtrlSum>500</CtrlSum>"), "{text}");
    }
}
