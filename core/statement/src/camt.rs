//! A statement as ISO 20022 camt.053. Entities beyond the five of XML, document types and what stands
//! beside the root are refused, depth and texts are bounded; elements that are not known do not count.

mod element;
mod names;
mod parties;
mod twins;

use chrono::NaiveDate;
use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};
use rust_decimal::Decimal;

use self::element::{attribute, is_of_camt, local_name};
use self::names::Names;
use self::parties::Parties;
use self::twins::Twins;
use super::{
    LINE_END, LINES_MAX, Line, NOT_PROVIDED, Unreadable, amount, bounded, day, is_placeholder,
    plain, stored_reference,
};

/// Most elements within each other.
const DEPTH_MAX: usize = 32;
/// Longest text of an element that is read, in bytes.
const TEXT_BYTES_MAX: usize = 4 * 1024;
/// Reason of a return that has none.
const UNKNOWN_REASON: &str = "NARR";
/// Reason of an entry that takes an earlier one back.
const REVERSAL: &str = "reversal";
/// Codes of a bank's own for what comes back: a returned transfer, or one that was recalled.
const RETURNS: [&str; 2] = ["RRTN", "RPCR"];

/// Reads the booked entries. One with details of several transactions is a line for each.
pub(super) fn read(text: &str) -> Result<Vec<Line>, Unreadable> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let (mut path, mut statement) = (Vec::new(), Statement::default());
    let mut has_root = false;
    loop {
        let wrong = |what: &str, at: u64| Unreadable(format!("byte {at}: {what}"));
        let at = reader.buffer_position();
        match reader.read_event().map_err(|_| wrong("not well-formed XML", at))? {
            Event::Start(start) => {
                if path.len() >= DEPTH_MAX {
                    return Err(wrong("elements are too deep", at));
                }
                if path.is_empty() && has_root {
                    return Err(wrong("a second root", at));
                }
                if path.is_empty() && !is_of_camt(&start) {
                    return Err(wrong("another namespace than camt.053's", at));
                }
                has_root = true;
                path.push(local_name(&start));
                statement.begin(&path, &start);
            }
            Event::Text(text) => {
                let text = text.decode().map_err(|_| wrong("not UTF-8", at))?;
                let text = unescape(&text).map_err(|_| wrong("an unknown entity", at))?;
                statement.text.push_str(&text);
            }
            Event::GeneralRef(name) => {
                let name = name.decode().map_err(|_| wrong("not UTF-8", at))?;
                let text = unescape(&format!("&{name};")).map(|text| text.into_owned());
                statement.text.push_str(&text.map_err(|_| wrong("an unknown entity", at))?);
            }
            Event::CData(data) => {
                let data = data.decode().map_err(|_| wrong("not UTF-8", at))?;
                statement.text.push_str(&data);
            }
            Event::End(_) => {
                statement.end(&path).map_err(|what| wrong(what, at))?;
                path.pop();
            }
            Event::DocType(_) => return Err(wrong("a document type", at)),
            Event::Eof => break,
            // Empty elements come as a start and an end.
            Event::Empty(_) | Event::Decl(_) | Event::PI(_) | Event::Comment(_) => {}
        }
        if path.is_empty() && !statement.text.trim().is_empty() {
            return Err(wrong("a text beside the root", at));
        }
        if statement.text.len() > TEXT_BYTES_MAX {
            return Err(wrong("a text is too long", at));
        }
        // Those of an open entry count, for their number is bounded by nothing else.
        if statement.lines.len() + statement.entry.details.len() > LINES_MAX {
            return Err(Unreadable(format!("it has more than {LINES_MAX} lines")));
        }
    }
    match statement.is_camt && path.is_empty() {
        true => Ok(statement.lines),
        false => Err(Unreadable("it is not a camt.053 statement".to_owned())),
    }
}

/// The statement as far as it is read.
#[derive(Default)]
struct Statement {
    lines: Vec<Line>,
    /// The text of the element that is open.
    text: String,
    currency: String,
    /// IBAN of the account.
    account: String,
    twins: Twins,
    is_camt: bool,
    entry: Entry,
    details: Option<Details>,
}

/// An entry that is open.
#[derive(Default)]
struct Entry {
    line: Line,
    names: Names,
    /// Its number in the statement; empty where it has none.
    number: String,
    is_debit: Option<bool>,
    is_booked: bool,
    /// The bank takes an earlier entry back.
    is_reversal: bool,
    details: Vec<Details>,
}

/// A transaction of an entry.
#[derive(Default)]
struct Details {
    line: Line,
    names: Names,
    parties: Parties,
    is_debit: Option<bool>,
    has_amount: bool,
}

/// The names of the open elements below the entry, or `None` outside of one.
fn within_entry(path: &[String]) -> Option<Vec<&str>> {
    let at = path.iter().position(|name| name == "Ntry")?;
    Some(path[at + 1..].iter().map(String::as_str).collect())
}

impl Statement {
    fn begin(&mut self, path: &[String], start: &BytesStart<'_>) {
        self.text.clear();
        match path.last().map(String::as_str) {
            Some("BkToCstmrStmt") => self.is_camt = true,
            Some("Stmt") => {
                self.account.clear();
                self.twins = Twins::default();
            }
            Some("Ntry") => self.entry = Entry { is_booked: true, ..Entry::default() },
            Some("TxDtls") => self.details = Some(Details::default()),
            Some("Amt") => {
                let currency = attribute(start, b"Ccy").unwrap_or_default();
                self.currency = bounded(&String::from_utf8_lossy(&currency));
            }
            _ => {}
        }
    }

    fn end(&mut self, path: &[String]) -> Result<(), &'static str> {
        let text = std::mem::take(&mut self.text);
        let Some(names) = within_entry(path) else {
            let names: Vec<&str> = path.iter().map(String::as_str).collect();
            if let [.., "Stmt", "Acct", "Id", "IBAN"] = names[..] {
                self.account = bounded(text.trim());
            }
            return Ok(());
        };
        match self.details.as_mut().filter(|_| names.contains(&"TxDtls")) {
            Some(details) => {
                let at = names.iter().position(|name| *name == "TxDtls").unwrap_or_default();
                details.read(&names[at + 1..], text.trim(), &self.currency)?;
                if names.last() == Some(&"TxDtls") {
                    self.entry.details.extend(self.details.take());
                }
            }
            None => self.entry.read(&names, text.trim(), &self.currency)?,
        }
        if names.is_empty() {
            let mut entry = std::mem::take(&mut self.entry);
            let number = std::mem::take(&mut entry.number);
            if entry.is_booked && entry.is_debit.is_none() {
                return Err("an entry is neither a credit nor a debit");
            }
            for mut line in entry.lines(&self.account) {
                self.twins.tell_apart(&number, &mut line);
                self.lines.push(Line { account: self.account.clone(), ..line });
            }
        }
        Ok(())
    }
}

impl Entry {
    fn read(&mut self, names: &[&str], text: &str, currency: &str) -> Result<(), &'static str> {
        match names {
            ["Amt"] => {
                self.line.amount = unsigned(text)?;
                currency.clone_into(&mut self.line.currency);
            }
            ["CdtDbtInd"] => self.is_debit = Some(is_debit(text)?),
            ["RvslInd"] => self.is_reversal = matches!(text, "true" | "1"),
            // In version 2 a code, later an element with one.
            ["Sts"] if !text.is_empty() => self.is_booked = text == "BOOK",
            ["Sts", "Cd"] => self.is_booked = text == "BOOK",
            ["BookgDt", "Dt" | "DtTm"] => self.line.date = Some(date(text)?),
            ["AcctSvcrRef"] => self.names.read_own(text),
            ["NtryRef"] => {
                self.number = plain(text);
                self.names.read_other(text);
            }
            ["AddtlNtryInf"] => self.line.reference = bounded(text),
            ["BkTxCd", "Domn", "Fmly", "SubFmlyCd"] if RETURNS.contains(&text) => {
                UNKNOWN_REASON.clone_into(&mut self.line.return_reason);
            }
            _ => {}
        }
        Ok(())
    }

    /// A line for each transaction, and one for what they are not of the entry's amount; or one for
    /// the entry: of several that do not all say how much they are, none is the whole.
    fn lines(self, account: &str) -> Vec<Line> {
        if !self.is_booked {
            return Vec::new();
        }
        let (several, of_entry) = (self.details.len() > 1, self.is_debit.unwrap_or_default());
        let says = |one: &Details| one.has_amount && one.line.currency == self.line.currency;
        let is_divided = !several || self.details.iter().all(says);
        let amount = signed(self.line.amount, of_entry);
        let mut whole = Line { amount, has_batch_reference: several, ..self.line };
        if self.is_reversal {
            REVERSAL.clone_into(&mut whole.return_reason);
        }
        let (unnamed, mut lines) = (Names::default(), Vec::new());
        for details in self.details {
            let Details { mut line, names, parties, is_debit, .. } = details;
            // One alone is the entry, whose side is that of the money.
            let is_debit = is_debit.filter(|_| several).unwrap_or(of_entry);
            line.amount = signed(line.amount, is_debit);
            if !several {
                line.amount = whole.amount;
                line.currency.clone_from(&whole.currency);
            }
            line.date = whole.date;
            if line.return_reason.is_empty() {
                line.return_reason.clone_from(&whole.return_reason);
            }
            parties.name(account, is_debit, &mut line);
            // Beside others the entry's name would be that of several payments.
            names.name(if several { &unnamed } else { &self.names }, &mut line);
            if line.reference.is_empty() {
                line.reference.clone_from(&whole.reference);
                line.has_batch_reference = several;
            }
            lines.push(line);
        }
        unnamed.name(&self.names, &mut whole);
        if lines.is_empty() || !is_divided {
            for part in lines {
                if whole.return_reason.is_empty() {
                    whole.return_reason = part.return_reason;
                }
                // Earlier versions took each of them for the whole.
                whole.earlier_references.extend(Some(part.provider_reference));
            }
            whole.earlier_references.retain(|name| !name.is_empty());
            return vec![whole];
        }
        // Charges that the bank has kept, or transactions that it does not list.
        whole.amount -= lines.iter().map(|line| line.amount).sum::<Decimal>();
        if !whole.amount.is_zero() {
            lines.push(whole);
        }
        names::tell_apart(&mut lines);
        lines
    }
}

impl Details {
    fn read(&mut self, names: &[&str], text: &str, currency: &str) -> Result<(), &'static str> {
        let line = &mut self.line;
        match names {
            // The first is the one in the account's currency.
            ["Amt"] | ["AmtDtls", "TxAmt", "Amt"] if !self.has_amount => {
                line.amount = unsigned(text)?;
                currency.clone_into(&mut line.currency);
                self.has_amount = true;
            }
            ["CdtDbtInd"] => self.is_debit = Some(is_debit(text)?),
            ["Refs", "AcctSvcrRef"] => self.names.read_own(text),
            ["Refs", "TxId" | "InstrId"] => self.names.read_other(text),
            ["RmtInf", "Ustrd"] | ["RmtInf", "Strd", "CdtrRefInf", "Ref"] => {
                let before = if line.reference.is_empty() { "" } else { LINE_END };
                line.reference = bounded(&format!("{}{before}{text}", line.reference));
            }
            ["Refs", "EndToEndId"] if text != NOT_PROVIDED => {
                if !is_placeholder(text) {
                    line.end_to_end_id = stored_reference(&plain(text));
                }
                // Among the words in any case, of which a line without a name has its name.
                if line.reference.is_empty() {
                    line.reference = bounded(text);
                }
            }
            ["RtrInf", "Rsn", "Cd" | "Prtry"] => line.return_reason = bounded(text),
            ["BkTxCd", "Domn", "Fmly", "SubFmlyCd"] if RETURNS.contains(&text) => {
                UNKNOWN_REASON.clone_into(&mut line.return_reason);
            }
            ["RtrInf"] if line.return_reason.is_empty() => {
                UNKNOWN_REASON.clone_into(&mut line.return_reason);
            }
            ["RltdPties", party @ ..] => self.parties.read(party, text),
            _ => {}
        }
        Ok(())
    }
}

/// The side of an entry: one that is not known must not pass for money that came in.
fn is_debit(text: &str) -> Result<bool, &'static str> {
    match text {
        "CRDT" => Ok(false),
        "DBIT" => Ok(true),
        _ => Err("an entry is neither a credit nor a debit"),
    }
}

/// An amount as a line has it.
fn signed(amount: Decimal, is_debit: bool) -> Decimal {
    if is_debit { -amount } else { amount }
}

/// An amount as an entry has it: its side is said apart from it.
fn unsigned(text: &str) -> Result<Decimal, &'static str> {
    let amount = amount(text).ok_or("an amount is not a number")?;
    if amount.is_sign_negative() && !amount.is_zero() {
        return Err("an amount is below zero");
    }
    Ok(amount)
}

fn date(text: &str) -> Result<NaiveDate, &'static str> {
    day(text.get(..10).unwrap_or(text)).ok_or("a date is not one")
}

#[cfg(test)]
mod tests;
