//! Statements: read from the inbox, reported line by line, then put away.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use rampart_connector::{ClientError, pace};
use rampart_statement::{Line, Unreadable};

use crate::Bank;
use crate::account::Account;
use crate::facts::fact;
use crate::folder::Folder;

/// Largest statement, in bytes.
pub(crate) const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Age at which a file that cannot be read is no longer one that is being written.
const SETTLED: Duration = Duration::from_secs(60);
/// Status of an event whose id was told with another body.
const CONFLICT: u16 = 409;
/// Statuses of an event that the edge can never take, such as one without a currency.
const UNTAKABLE: [u16; 3] = [400, 413, 422];

/// Reports what arrives, until the edge or the disk refuses.
///
/// # Errors
/// One sentence.
pub(crate) async fn watch(bank: &Bank) -> Result<(), String> {
    let interval = Duration::from_secs(bank.settings.statements.interval_seconds);
    loop {
        let failed = |error: io::Error| format!("cannot read the inbox: {error}");
        for name in names(&bank.folder).map_err(failed)? {
            take(bank, &name).await?;
        }
        pace::pause(interval).await;
    }
}

/// The files of the inbox, by name. Those that begin with a point are being written.
fn names(folder: &Folder) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder.path("inbox"))? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type()?.is_file() && !name.as_encoded_bytes().starts_with(b".") {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Reports the lines of a file. Killed on the way, it begins again: an event that was told is told
/// as the same.
async fn take(bank: &Bank, file: &OsStr) -> Result<(), String> {
    let name = &*file.to_string_lossy();
    let failed = |error: io::Error| format!("cannot use the statement {name}: {error}");
    let path = bank.folder.path("inbox").join(file);
    let bytes = match bytes(&path) {
        // It was renamed since the folder was read, as by a program that has written it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        bytes => bytes.map_err(failed)?,
    };
    let parsed = parse(&bytes);
    let all = parsed.as_ref().map_or(0, Vec::len);
    let lines = match parsed.and_then(|lines| of_account(lines, &bank.settings.account)) {
        Ok(lines) => lines,
        Err(reason) if is_settled(&path).map_err(failed)? => {
            tracing::error!(name, %reason, "a statement is refused");
            return bank.folder.refuse(file, &bytes).map_err(failed);
        }
        Err(_) => return Ok(()),
    };
    let (mut told, mut known) = (0_usize, 0_usize);
    for line in &lines {
        let Some(event) = fact(line) else {
            tracing::info!(
                name,
                reference = line.provider_reference,
                "a line is for reconciliation"
            );
            continue;
        };
        match bank.edge.event(&event).await {
            Ok(true) => known += 1,
            Ok(false) => told += 1,
            Err(ClientError::Refused { status: CONFLICT, .. }) => {
                let reference = &line.provider_reference;
                tracing::error!(name, reference, "a line contradicts an earlier statement");
            }
            // The lines behind it are told all the same: a reconciliation lists this one.
            Err(error @ ClientError::Refused { status, .. }) if UNTAKABLE.contains(&status) => {
                let reference = &line.provider_reference;
                tracing::error!(name, reference, %error, "a line cannot be told");
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    if !bank.folder.keep(file, &bytes).map_err(failed)? {
        tracing::warn!(name, "another statement has come under its name, and is read next");
    }
    let others = all - lines.len();
    tracing::info!(name, told, known, others, "a statement was read");
    Ok(())
}

/// The lines of a file.
///
/// # Errors
/// The disk's; within it, the reason for which it is no statement.
pub(crate) fn read(path: &Path) -> io::Result<Result<Vec<Line>, Unreadable>> {
    Ok(parse(&bytes(path)?))
}

/// The bytes of a file, of which one more than the most says that it is too large.
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The lines of a statement's bytes, for [`of_account`], which names those without a name of the bank's.
///
/// # Errors
/// The reason for which they are no statement.
pub(crate) fn parse(bytes: &[u8]) -> Result<Vec<Line>, Unreadable> {
    let unreadable = |reason: &str| Err(Unreadable(reason.to_owned()));
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > FILE_BYTES_MAX {
        return unreadable("it has more than 16 MiB");
    }
    // Of a file that is half written only XML tells that its end is missing.
    if !bytes.trim_ascii_start().starts_with(b"<") && !bytes.starts_with(b"\xef\xbb\xbf<") {
        return unreadable("it is not a camt.053 statement");
    }
    rampart_statement::parse(bytes)
}

/// The account's lines: a file may have a statement for each of several accounts.
///
/// # Errors
/// When it has lines and none of them is the account's, or one of them may be.
pub(crate) fn of_account(lines: Vec<Line>, account: &Account) -> Result<Vec<Line>, Unreadable> {
    let unreadable = |reason: &str| Err(Unreadable(reason.to_owned()));
    let is_empty = lines.is_empty();
    let is_anybodys = lines.iter().any(|line| line.account.is_empty());
    let mut own = lines;
    own.retain(|line| line.account == account.iban);
    if is_anybodys || own.is_empty() && !is_empty {
        return unreadable("it is of another account");
    }
    if own.iter().any(|line| line.date.is_none()) {
        return unreadable("a line has no day of booking");
    }
    // Without the others: an equal line of theirs would count, and in a file of its own it does not.
    Ok(rampart_statement::named(own))
}

/// True if the file is there, and nobody has written to it for a while.
fn is_settled(path: &Path) -> io::Result<bool> {
    let age = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        metadata => metadata?.modified()?.elapsed(),
    };
    // A file of the future is being written by somebody whose clock is wrong.
    Ok(age.is_ok_and(|age| age >= SETTLED))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;
    use std::os::unix::ffi::OsStrExt as _;
    use std::thread::JoinHandle;

    use rampart_connector::Client;

    use super::*;
    use crate::folder::tests::Place;
    use crate::transfer::tests::settings;

    pub(crate) fn entry(reference: &str, side: &str, details: &str) -> String {
        format!(
            "<Ntry><Amt Ccy=\"EUR\">100.00</Amt><CdtDbtInd>{side}</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>\
             <BookgDt><Dt>2026-03-01</Dt></BookgDt><AcctSvcrRef>{reference}</AcctSvcrRef><NtryDtls>\
             <TxDtls>{details}<RltdPties><Dbtr><Pty><Nm>Ada</Nm></Pty></Dbtr><DbtrAcct><Id>\
             <IBAN>NL58ABNA0000000001</IBAN></Id></DbtrAcct></RltdPties></TxDtls></NtryDtls></Ntry>"
        )
    }

    pub(crate) fn statement(entries: &[String]) -> String {
        format!(
            "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.053.001.08\"><BkToCstmrStmt><Stmt>\
             <Id>1</Id><Acct><Id><IBAN>NL02ABNA0123456789</IBAN></Id></Acct>{}</Stmt>\
             </BkToCstmrStmt></Document>",
            entries.concat()
        )
    }

    #[test]
    fn the_inbox_is_read_in_order_without_what_is_being_written() {
        let place = Place::make();
        let folder = Folder::open(&place.0).unwrap();
        for name in ["b.xml", "a.xml", ".c.xml"] {
            fs::write(place.0.join("inbox").join(name), "").unwrap();
        }
        fs::create_dir(place.0.join("inbox/d")).unwrap();
        let latin = OsStr::from_bytes(b"c\xe4.xml");
        fs::write(place.0.join("inbox").join(latin), "").unwrap();
        assert_eq!(names(&folder).unwrap(), [OsStr::new("a.xml"), OsStr::new("b.xml"), latin]);
    }

    /// URL of an edge that answers calls with these statuses, and their bodies once it has.
    fn edge(statuses: &'static [u16]) -> (String, JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heard = std::thread::spawn(move || {
            let answered = statuses.iter().map(|status| {
                let mut stream = BufReader::new(listener.accept().unwrap().0);
                let (mut line, mut length) = (String::new(), 0);
                while stream.read_line(&mut line).unwrap() > 2 {
                    if let Some(text) = line.strip_prefix("content-length: ") {
                        length = text.trim().parse().unwrap();
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                stream.read_exact(&mut body).unwrap();
                let answer = format!(
                    "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{{}}"
                );
                stream.get_mut().write_all(answer.as_bytes()).unwrap();
                String::from_utf8(body).unwrap()
            });
            answered.collect()
        });
        (url, heard)
    }

    /// A bank in this folder, of the edge at a URL.
    pub(crate) fn bank(place: &Place, url: &str) -> Bank {
        let token = place.0.join("edge.token");
        fs::write(&token, "rcn_abc").unwrap();
        let mut settings = settings();
        let with_token = serde_json::json!({ "url": url, "token": { "file": token } });
        settings.edge = serde_json::from_value(with_token).unwrap();
        let edge = Client::new(&settings.edge).unwrap();
        Bank { edge, folder: Folder::open(&place.0).unwrap(), settings }
    }

    #[tokio::test]
    async fn a_file_that_was_taken_away_is_passed_over() {
        let place = Place::make();
        let bank = bank(&place, "http://127.0.0.1:9");
        take(&bank, "one.xml.part".as_ref()).await.unwrap();
        assert!(!is_settled(&place.0.join("inbox/one.xml.part")).unwrap());
    }

    #[tokio::test]
    async fn a_line_that_the_edge_cannot_read_holds_no_other_one_up() {
        let place = Place::make();
        let (url, heard) = edge(&[422, 413, 409, 200]);
        let bank = bank(&place, &url);
        let names = ["bank-1", "bank-2", "bank-3", "bank-4"];
        let entries = names.map(|name| entry(name, "CRDT", ""));
        fs::write(place.0.join("inbox/one.xml"), statement(&entries)).unwrap();
        take(&bank, "one.xml".as_ref()).await.unwrap();
        let heard = heard.join().unwrap();
        assert!(heard.len() == 4 && heard[3].contains("bank-4"), "{heard:?}");
        assert!(place.names("inbox").is_empty() && place.names("taken").len() == 1);
    }

    #[tokio::test]
    async fn a_file_with_statements_of_several_accounts_is_read_for_the_own_one() {
        let place = Place::make();
        let (url, heard) = edge(&[200]);
        let bank = bank(&place, &url);
        let own = statement(&[entry("bank-1", "CRDT", "")]);
        let stmt = "<Stmt><Id>2</Id><Acct><Id><IBAN>NL20INGB0001234567</IBAN></Id></Acct>";
        let others = format!("{stmt}{}</Stmt>", entry("bank-2", "CRDT", ""));
        let both = own.replace("</Stmt>", &format!("</Stmt>{others}"));
        fs::write(place.0.join("inbox/both.xml"), &both).unwrap();
        take(&bank, "both.xml".as_ref()).await.unwrap();
        let heard = heard.join().unwrap();
        assert!(heard.len() == 1 && heard[0].contains("bank-1"), "{heard:?}");
        assert!(place.names("inbox").is_empty() && place.names("taken").len() == 1);

        let account = &bank.settings.account;
        let unnamed = both.replace("<Acct><Id><IBAN>NL20INGB0001234567</IBAN></Id></Acct>", "");
        for text in [unnamed, own.replace("NL02ABNA0123456789", "NL20INGB0001234567")] {
            assert!(of_account(parse(text.as_bytes()).unwrap(), account).is_err(), "{text}");
        }
    }

    #[test]
    fn a_line_has_the_same_name_beside_an_equal_one_of_another_account() {
        let unnamed = entry("NONREF", "CRDT", "");
        let own = statement(std::slice::from_ref(&unnamed));
        let stmt = "<Stmt><Id>2</Id><Acct><Id><IBAN>NL20INGB0001234567</IBAN></Id></Acct>";
        let both = own.replace("<Stmt>", &format!("{stmt}{unnamed}</Stmt><Stmt>"));
        let names = |text: &str| -> Vec<String> {
            let lines = of_account(parse(text.as_bytes()).unwrap(), &settings().account).unwrap();
            lines.into_iter().map(|line| line.provider_reference).collect()
        };
        assert!(names(&own)[0].starts_with("line-"), "{own}");
        assert_eq!(names(&both), names(&own));
    }

    #[test]
    fn half_a_file_is_no_statement() {
        let place = Place::make();
        let path = place.0.join("file");
        let whole = statement(&[entry("bank-1", "CRDT", "")]);
        let csv = "date,amount,currency\n2026-03-01,1,EUR\n";
        for (text, is_read) in
            [(whole.as_str(), true), (&whole[..whole.len() - 5], false), (csv, false)]
        {
            fs::write(&path, text).unwrap();
            assert_eq!(read(&path).unwrap().is_ok(), is_read, "{text}");
        }
        assert!(!is_settled(&path).unwrap());
    }
}
