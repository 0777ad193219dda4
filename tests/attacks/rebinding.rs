//! Callbacks that are led elsewhere on the way: by redirects, and by names whose addresses are
//! another's. No host but the one that was checked is spoken to.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use http::Method;
use rampart_tests::buyer::{order, order_of};
use rampart_tests::caller::Caller;
use rampart_tests::campaign::{Report, Scale};
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::{Edge, Folder};
use rampart_tests::receiver::{Reaction, Receiver};
use serde_json::{Value, json};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use crate::target::Target;
use crate::verdict::{Verdict, judged};

const WEBHOOKS: &str = "/api/v2/webhooks";
const REDIRECTS: [u16; 6] = [300, 301, 302, 303, 307, 308];
/// Address of the name server: a resolver asks no other port.
const NAME_SERVER: &str = "127.53.0.53:53";

/// Redirects of a host that may be called, to hosts that may not.
pub(crate) async fn redirects(scale: Scale) -> Report {
    let target = Target::start().await;
    let partner = target.partner.authenticated().await;
    let (host, inside) = (Receiver::start().await, Receiver::start().await);
    let admin = format!("http://{}/admin/v1/partners", target.edge.admin);
    let places = [
        inside.url("/inside"),
        admin,
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "file:///etc/passwd".to_owned(),
    ];
    judged(scale, &target.neighbour, async |verdict: &mut Verdict| {
        for status in REDIRECTS {
            for place in &places {
                host.react(Reaction::with_header(status, "location", place));
                let delivery = delivery(&target.edge, &partner, &host.url("/hook")).await;
                let delivery = delivery.unwrap();
                let followed = delivery["lastError"] != "redirect" || !inside.heard().is_empty();
                verdict.note(followed, || format!("{status} to {place}: {delivery}"));
            }
        }
    })
    .await
}

/// A webhook's first delivery once it was tried; `None` when the webhook is refused.
async fn delivery(edge: &Edge, partner: &Caller, url: &str) -> Option<Value> {
    let body = json!({"url": url, "events": ["order.created"]});
    let hook = partner.post(WEBHOOKS, body).await;
    let hook = if hook.status() == 200 { hook.json() } else { return None };
    let order = order_of(&order(partner).await);
    let path = format!("/admin/v1/deliveries?order={order}");
    let delivery = until("it was tried", SOON, async || {
        let deliveries = edge.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
        deliveries.as_array()?.iter().find(|delivery| delivery["attempts"] != 0).cloned()
    })
    .await;
    let path = format!("{WEBHOOKS}/{}", hook["id"].as_str().unwrap());
    partner.request(Method::DELETE, &path).send().await.assert_status(200);
    Some(delivery)
}

/// Names whose addresses are inside, or some of them, told to the edge by a name server of its own.
pub(crate) async fn names(scale: Scale) -> Report {
    let Some(server) = NameServer::start().await else {
        return Report { cells: vec!["needs root".to_owned()], wrong: Vec::new() };
    };
    let folder = Folder::make();
    let resolv = folder.path().join("resolv.conf");
    fs::write(&resolv, "nameserver 127.53.0.53\noptions timeout:1 attempts:1\n").unwrap();
    let mount = format!("mount --bind {} /etc/resolv.conf && exec \"$0\" \"$@\"", resolv.display());
    let target = Target::with(|setup| {
        setup.under(&["/usr/bin/unshare", "--mount", "/bin/sh", "-c", &mount]);
    })
    .await;
    let partner = target.partner.authenticated().await;
    let inside = Receiver::start().await;
    let port = inside.url("").rsplit(':').next().unwrap().to_owned();
    let (mut number, mut resolved) = (0, 0);
    let mut report = judged(scale, &target.neighbour, async |verdict: &mut Verdict| {
        for (kind, _) in KINDS {
            for scheme in ["http", "https"] {
                number += 1;
                // A name of its own for each attempt, so that nothing is remembered.
                let name = format!("{kind}{number}.rebinding.example");
                let url = format!("{scheme}://{name}:{port}/hook");
                let Some(delivery) = delivery(&target.edge, &partner, &url).await else {
                    verdict.note(false, String::new);
                    continue;
                };
                let asked = server.asked(&name);
                resolved += asked;
                let reached = delivery["lastError"] != "forbidden" || !inside.heard().is_empty();
                // Asked once, there is no second answer to connect to.
                verdict.note(reached || asked > 1, || {
                    format!("{url}, asked for {asked} times: {delivery}")
                });
            }
        }
    })
    .await;
    report.require(resolved >= KINDS.len(), || format!("{resolved} names were asked for"));
    report
}

/// Names by their first letters, and the addresses that they have.
const KINDS: [(&str, &[Ipv4Addr]); 5] = [
    ("loopback", &[Ipv4Addr::LOCALHOST]),
    ("private", &[Ipv4Addr::new(10, 0, 0, 1)]),
    ("metadata", &[Ipv4Addr::new(169, 254, 169, 254)]),
    ("mixed", &[Ipv4Addr::new(1, 1, 1, 1), Ipv4Addr::LOCALHOST]),
    ("turned", &[Ipv4Addr::new(192, 168, 0, 1), Ipv4Addr::new(1, 1, 1, 1)]),
];

/// A name server that knows [`KINDS`], and counts how often each name was asked for.
struct NameServer {
    asked: Arc<Mutex<BTreeMap<String, usize>>>,
    answering: JoinHandle<()>,
}

impl NameServer {
    /// Starts it; `None` for whoever may not use its port.
    async fn start() -> Option<Self> {
        let socket = UdpSocket::bind(NAME_SERVER).await.ok()?;
        let asked = Arc::<Mutex<BTreeMap<String, usize>>>::default();
        let counted = Arc::clone(&asked);
        let answering = tokio::spawn(async move {
            let mut bytes = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut bytes).await {
                let Some((name, answer)) = answer(&bytes[..length]) else { continue };
                if let Some(name) = name {
                    let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
                    *counted.entry(name).or_default() += 1;
                }
                // An answer that is lost is asked for again.
                let _ = socket.send_to(&answer, from).await;
            }
        });
        Some(Self { asked, answering })
    }

    /// Times that the addresses of this name were asked for.
    fn asked(&self, name: &str) -> usize {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.get(name).copied().unwrap_or_default()
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.answering.abort();
    }
}

/// The answer to a query (RFC 1035, section 4), and the name if it was asked for IPv4 addresses.
fn answer(query: &[u8]) -> Option<(Option<String>, Vec<u8>)> {
    let (mut labels, mut at) = (Vec::new(), 12);
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(query.get(at..at + length)?).to_lowercase());
        at += length;
    }
    let question = query.get(12..at + 4)?;
    let name = labels.join(".");
    let known = KINDS.iter().find(|(kind, _)| name.starts_with(kind));
    let is_ipv4 = question.get(question.len() - 4..)?.starts_with(&[0, 1]);
    let addresses = known.filter(|_| is_ipv4).map_or(&[][..], |(_, addresses)| addresses);
    let count = u8::try_from(addresses.len()).ok()?;
    // A response without an error, to one question.
    let mut bytes = [&query[..2], &[0x81, 0x80, 0, 1, 0, count, 0, 0, 0, 0], question].concat();
    for address in addresses {
        // The name of the question, A, IN, for no time, four bytes.
        bytes.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        bytes.extend(address.octets());
    }
    Some((is_ipv4.then_some(name), bytes))
}
