//! Callbacks to places that only the edge can reach: its own machine, its neighbours, its cloud.

use http::Method;
use rampart_tests::buyer::{order, order_of};
use rampart_tests::caller::Caller;
use rampart_tests::campaign::{Report, Scale};
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::{Edge, UNLIMITED};
use serde_json::json;

use crate::target::Target;
use crate::verdict::{Verdict, judged};

const WEBHOOKS: &str = "/api/v2/webhooks";
/// Webhooks at once, of the 50 that a partner may have.
const HOOKS_MAX: usize = 10;

/// Hosts by number, in every spelling that some parser understands.
const HOSTS: [&str; 46] = [
    "0.0.0.0",
    "0",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.127.255.254",
    "169.254.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "0xa9fea9fe",
    "2852039166",
    "0251.0376.0251.0376",
    "169.254.43518",
    "0xa9.254.169.254",
    "10.1",
    "0xc0a80001",
    "[::]",
    "[::ffff:10.0.0.1]",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[::169.254.169.254]",
    "[64:ff9b::10.0.0.1]",
    "[64:ff9b:1::1]",
    "[100::1]",
    "[2001::1]",
    "[2001:db8::1]",
    "[2002:a00:1::]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fec0::1]",
    "[ff02::1]",
    "１０.0.0.1",
    "10。0。0。1",
    "①⓪.0.0.1",
];

/// Loopback: allowed to test clients, whose developers have no public host, and to nobody else.
const LOOPBACK: [&str; 12] = [
    "127.0.0.1",
    "127.1",
    "127.0.0.2",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "017700000001",
    "localhost",
    "LOCALHOST",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
];

/// Other ways to say elsewhere.
const URLS: [&str; 16] = [
    "file:///etc/passwd",
    "gopher://shop.example/",
    "ftp://shop.example/",
    "ldap://shop.example/",
    "dict://shop.example:11211/",
    "jar:https://shop.example!/",
    "data:text/plain,x",
    "javascript:alert(1)",
    "//shop.example/",
    "https://",
    "https:///x",
    "http://shop.example/",
    "https://user@shop.example/",
    "https://user:password@shop.example/",
    "https://shop.example@10.0.0.1/",
    "https://10.0.0.1#@shop.example/",
];

/// A webhook that was registered: the id, and the URL as it was written.
struct Hook {
    id: String,
    url: String,
}

pub(crate) async fn callbacks(scale: Scale) -> Report {
    let target = Target::start().await;
    let test = target.partner.authenticated().await;
    let live = live(&target.edge).await.authenticated().await;
    let mut urls: Vec<String> = URLS.iter().map(|url| (*url).to_owned()).collect();
    for host in HOSTS {
        for form in ["https://HOST/", "http://HOST/", "https://HOST:22/", "https://HOST:5432/x?y"] {
            urls.push(form.replace("HOST", host));
        }
    }
    let loopback = LOOPBACK.iter().flat_map(|host| {
        [format!("https://{host}/hook"), format!("http://{host}:{}/", target.edge.admin.port())]
    });
    let loopback: Vec<String> = loopback.collect();
    judged(scale, &target.neighbour, async |verdict: &mut Verdict| {
        for urls in urls.chunks(HOOKS_MAX) {
            attack(&target.edge, &test, urls, verdict).await;
        }
        for urls in urls.chunks(HOOKS_MAX).chain(loopback.chunks(HOOKS_MAX)) {
            attack(&target.edge, &live, urls, verdict).await;
        }
    })
    .await
}

/// Registers these URLs. Where that is granted, an order is made, and what is sent to each of them
/// must be refused before a connection.
async fn attack(edge: &Edge, partner: &Caller, urls: &[String], verdict: &mut Verdict) {
    let mut hooks = Vec::new();
    for url in urls {
        let body = json!({"url": url, "events": ["order.created"]});
        let answer = partner.post(WEBHOOKS, body).await;
        match answer.status() {
            200 => {
                let id = answer.json()["id"].as_str().unwrap().to_owned();
                hooks.push(Hook { id, url: url.clone() });
            }
            status => verdict.note(status >= 500, || format!("{status} for {url}")),
        }
    }
    if hooks.is_empty() {
        return;
    }
    let order = order_of(&order(partner).await);
    let path = format!("/admin/v1/deliveries?order={order}");
    let deliveries = until("everything was tried", SOON * 2, async || {
        let deliveries = edge.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
        let deliveries = deliveries.as_array()?.clone();
        let tried = deliveries.iter().filter(|delivery| delivery["attempts"] != 0).count();
        (tried == hooks.len()).then_some(deliveries)
    })
    .await;
    for hook in hooks {
        let refused = deliveries
            .iter()
            .filter(|delivery| delivery["lastError"] == "forbidden")
            .any(|delivery| delivery["url"].as_str().is_some_and(|url| same(url, &hook.url)));
        verdict.note(!refused, || format!("a connection to {}: {deliveries:?}", hook.url));
        let path = format!("{WEBHOOKS}/{}", hook.id);
        partner.request(Method::DELETE, &path).send().await.assert_status(200);
    }
}

/// `true` if both spell one URL.
fn same(one: &str, other: &str) -> bool {
    let parse = |text: &str| url::Url::parse(text).ok();
    parse(one).is_some_and(|one| Some(one) == parse(other))
}

/// A live partner.
async fn live(edge: &Edge) -> Caller {
    let body = json!({"slug": "live", "name": "Live", "mode": "live"});
    let partner = edge.partner_of(body).await;
    let rates = json!({"rateLimits": {"client": UNLIMITED}});
    edge.admin(Method::PATCH, "/admin/v1/partners/live", rates).await.assert_status(200);
    partner
}
