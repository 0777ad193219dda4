//! The connector of a bank account in a process of its own, and the bank on the other side of its
//! folder.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::edge::Folder;
use crate::process::{Process, binary};

/// IBAN of the account.
pub const ACCOUNT: &str = "NL02ABNA0123456789";

/// The program of a connector, as `plugins/connectors/build` made it.
///
/// # Panics
/// When it was not built.
pub fn connector(name: &str) -> PathBuf {
    let target = binary().parent().and_then(Path::parent).unwrap().to_owned();
    let binary = target.join(format!("connectors/debug/rampart-connector-{name}"));
    assert!(binary.is_file(), "{} is missing: run plugins/connectors/build", binary.display());
    binary
}

/// A bank account: its folder, the connector's configuration, and the bank's side.
pub struct BankAccount {
    folder: Folder,
}

impl BankAccount {
    /// An account whose connector has this token at the edge.
    pub fn new(edge: SocketAddr, token: &str) -> Self {
        let account = Self { folder: Folder::make() };
        fs::write(account.path("token"), token).unwrap();
        account.lead_to(edge);
        account
    }

    /// Leads the connector, once it is started again, to this address.
    pub fn lead_to(&self, edge: SocketAddr) {
        let configuration = format!(
            "folder = \"{}\"\n[edge]\nurl = \"http://{edge}\"\ntoken = {{ file = \"{}\" }}\n\
             [account]\nname = \"Rampart\"\niban = \"{ACCOUNT}\"\n\
             [statements]\ninterval_seconds = 1\n",
            self.path("files").display(),
            self.path("token").display(),
        );
        fs::write(self.path("bank.toml"), configuration).unwrap();
    }

    /// A file of the account's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the connector with these arguments besides its configuration.
    pub fn spawn(&self, arguments: &[&str]) -> Process {
        let mut command = Command::new(connector("bank"));
        command.env_clear().arg("--config").arg(self.path("bank.toml")).args(arguments);
        Process::spawn(command)
    }

    /// Brings a statement of these entries to the connector, as a whole.
    pub fn deliver(&self, name: &str, entries: &[String]) {
        fs::create_dir_all(self.path("files/inbox")).unwrap();
        let unfinished = self.path(&format!("files/inbox/.{name}"));
        fs::write(&unfinished, statement(entries)).unwrap();
        fs::rename(unfinished, self.path(&format!("files/inbox/{name}"))).unwrap();
    }

    /// Names of the files of a subfolder.
    pub fn files(&self, subfolder: &str) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.path("files").join(subfolder)) else {
            return Vec::new();
        };
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Takes the files that have appeared away, as a bank does.
    pub fn collect(&self) {
        let collected = self.path("collected");
        fs::create_dir_all(&collected).unwrap();
        for file in self.files("outbox") {
            fs::rename(&file, collected.join(file.file_name().unwrap())).unwrap();
        }
    }

    /// The transfers that have appeared for the bank: how often each, by `EndToEndId`, and what it
    /// says of itself.
    pub fn transfers(&self) -> BTreeMap<String, (usize, String)> {
        let mut transfers = BTreeMap::new();
        for file in [self.files("outbox"), self.files("../collected")].concat() {
            let text = fs::read_to_string(file).unwrap();
            for transfer in text.split("<CdtTrfTxInf>").skip(1) {
                let id = element(transfer, "EndToEndId");
                let seen = transfers.entry(id).or_insert((0, transfer.to_owned()));
                seen.0 += 1;
            }
        }
        transfers
    }
}

/// True if files of transfers are valid by somebody else's schema.
pub fn is_valid(files: &[PathBuf]) -> bool {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/payment-schema");
    Command::new(program).args(files).output().unwrap().status.success()
}

/// The text of the first element of this name.
///
/// # Panics
/// Without one.
pub fn element(xml: &str, name: &str) -> String {
    let (_, rest) = xml.split_once(&format!("<{name}")).unwrap();
    let (_, rest) = rest.split_once('>').unwrap();
    rest.split('<').next().unwrap().to_owned()
}

/// An entry of a statement of money that came. `details` are more elements of the transaction, in
/// the schema's order.
pub fn credit(amount: &str, reference: &str, details: &str) -> String {
    entry("CRDT", amount, reference, details)
}

/// The same of money that left.
pub fn debit(amount: &str, reference: &str, details: &str) -> String {
    entry("DBIT", amount, reference, details)
}

fn entry(side: &str, amount: &str, reference: &str, details: &str) -> String {
    format!(
        "<Ntry><Amt Ccy=\"EUR\">{amount}</Amt><CdtDbtInd>{side}</CdtDbtInd>\
         <Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>2026-03-01</Dt></BookgDt>\
         <AcctSvcrRef>{reference}</AcctSvcrRef><NtryDtls><TxDtls>{details}</TxDtls></NtryDtls></Ntry>"
    )
}

/// The details of a payment by Ada Lovelace with this text.
pub fn paid_by_ada(text: &str) -> String {
    format!(
        "<Refs><EndToEndId>NOTPROVIDED</EndToEndId></Refs><RltdPties><Dbtr><Pty>\
         <Nm>Ada Lovelace</Nm></Pty></Dbtr><DbtrAcct><Id><IBAN>NL58ABNA0000000001</IBAN></Id>\
         </DbtrAcct></RltdPties><RmtInf><Ustrd>{text}</Ustrd></RmtInf>"
    )
}

/// The details of a transfer of ours, which came back if there is a reason.
pub fn transfer(end_to_end_id: &str, return_reason: Option<&str>) -> String {
    let returned = return_reason.map_or_else(String::new, |reason| {
        format!("<RtrInf><Rsn><Cd>{reason}</Cd></Rsn></RtrInf>")
    });
    format!("<Refs><EndToEndId>{end_to_end_id}</EndToEndId></Refs>{returned}")
}

/// A statement of the account.
pub fn statement(entries: &[String]) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\
         <Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.053.001.08\"><BkToCstmrStmt><Stmt>\
         <Id>1</Id><Acct><Id><IBAN>{ACCOUNT}</IBAN></Id></Acct>{}</Stmt></BkToCstmrStmt></Document>",
        entries.concat()
    )
}
