//! Traces: a caller's goes on through the edge, its policies and statements to the deliveries, and a
//! collector that is in trouble costs no request anything.

use std::collections::BTreeSet;

use http::Method;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as OtlpValue;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use rampart_tests::caller::{Caller, Protocol};
use rampart_tests::cluster;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::{ADMIN_TOKEN, Edge};
use rampart_tests::guests::component;
use rampart_tests::receiver::{Reaction, Receiver};
use serde_json::{Value, json};

use crate::buyer::{WALLET, ask_quote, confirm, order, quote};
use crate::connectors::printed;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// An edge that sends its traces to `collector`.
async fn traced(collector: &Receiver, ratio: &str) -> Edge {
    let endpoint = collector.url("");
    Edge::with(|setup| {
        setup.set("telemetry.otlp_endpoint", &endpoint).set("telemetry.sample_ratio", ratio);
    })
    .await
}

/// Every span that the collector has.
fn spans(collector: &Receiver) -> Vec<Span> {
    let requests = collector.heard().into_iter().map(|heard| {
        assert_eq!((&*heard.method, &*heard.target), ("POST", "/v1/traces"));
        assert_eq!(heard.header("content-type"), "application/x-protobuf");
        ExportTraceServiceRequest::decode(heard.body).unwrap()
    });
    let resources = requests.flat_map(|request| request.resource_spans);
    let scopes = resources.flat_map(|resource| {
        let service = resource.resource.unwrap().attributes;
        assert_eq!((&*service[0].key, text(&service[0].value)), ("service.name", "rampart".into()));
        resource.scope_spans
    });
    scopes.flat_map(|scope| scope.spans).collect()
}

fn text(value: &Option<opentelemetry_proto::tonic::common::v1::AnyValue>) -> String {
    match value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(OtlpValue::StringValue(text)) => text.clone(),
        Some(OtlpValue::IntValue(number)) => number.to_string(),
        other => panic!("{other:?}"),
    }
}

fn attribute(span: &Span, key: &str) -> String {
    let found = span.attributes.iter().find(|one| one.key == key);
    text(&found.unwrap_or_else(|| panic!("no {key} in {span:?}")).value)
}

/// The span of this name in a trace, once the collector has it.
async fn span(collector: &Receiver, trace: &str, name: &str) -> Span {
    until(&format!("{name} in {trace}"), SOON, async || {
        let found = spans(collector).into_iter();
        found.into_iter().find(|span| hex(&span.trace_id) == trace && span.name == name)
    })
    .await
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A webhook endpoint of the partner that listens to one type of event.
async fn hook(partner: &Caller, event: &str) -> Receiver {
    let receiver = Receiver::start().await;
    let body = json!({"url": receiver.url("/hook"), "events": [event]});
    partner.post("/api/v2/webhooks", body).await.assert_status(200);
    receiver
}

#[tokio::test]
async fn the_line_of_a_failure_names_the_trace() {
    let edge = Edge::start().await;
    let partner = edge.partner("traced").await.authenticated().await;
    let db = cluster::pool(edge.setup().database()).await;
    sqlx::query("alter table buy_order rename to away").execute(&db).await.unwrap();
    let asked = partner.request(Method::GET, "/api/v2/buy/orders");
    let asked = asked.header("traceparent", &format!("00-{TRACE}-{CALLER}-01"));
    asked.header("x-request-id", "the-list").send().await.assert_status(500);
    until("the failure is logged", SOON, async || {
        let lines = edge.process.err();
        let failed = lines.iter().find(|line| line.contains("the-list"))?;
        assert!(failed.contains(TRACE) && !failed.contains("at line"), "{failed}");
        Some(())
    })
    .await;
}

#[tokio::test]
async fn the_line_of_an_operators_failure_names_request_and_trace() {
    let collector = Receiver::start().await;
    let edge = traced(&collector, "1").await;
    let db = cluster::pool(edge.setup().database()).await;
    sqlx::query("alter table buy_order rename to away").execute(&db).await.unwrap();
    let asked = Protocol::Http1.client().get(format!("http://{}/admin/v1/orders", edge.admin));
    let asked = asked.bearer_auth(ADMIN_TOKEN).header("x-request-id", "the-search");
    assert_eq!(asked.send().await.unwrap().status(), 500);
    until("the failure is logged", SOON, async || {
        let lines = edge.process.err();
        let failed = lines.iter().find(|line| line.contains("a private call failed"))?;
        assert!(failed.contains("the-search") && failed.contains("trace_id"), "{failed}");
        Some(())
    })
    .await;
}

#[tokio::test]
async fn the_line_of_a_policys_failure_names_the_trace() {
    let edge = Edge::start().await;
    let partner = edge.partner("traced").await.authenticated().await;
    let path = "/admin/v1/partners/traced/policies/fee?config=%7B%22mode%22:%22error@FR%22%7D";
    edge.admin_bytes(Method::PUT, path, component("hostile")).await.assert_status(200);
    let body = json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100,
        "countryCode": "FR"});
    let asked = partner.request(Method::POST, "/api/v1/buy/quote").json(&body);
    let asked = asked.header("traceparent", &format!("00-{TRACE}-{CALLER}-01"));
    asked.send().await.assert_status(200);
    until("the failure is logged", SOON, async || {
        let lines = edge.process.err();
        let failed = lines.iter().find(|line| line.contains("a policy call failed"))?;
        assert!(failed.contains(TRACE), "{failed}");
        Some(())
    })
    .await;
}

#[tokio::test]
async fn a_callers_trace_goes_through_policy_and_statement_to_the_delivery() {
    let collector = Receiver::start().await;
    let edge = traced(&collector, "1").await;
    let partner = edge.partner("traced").await.authenticated().await;
    let path = "/admin/v1/partners/traced/policies/fee";
    edge.admin_bytes(Method::PUT, path, component("tiered-fee")).await.assert_status(200);
    let receiver = hook(&partner, "order.created").await;

    let asked = ask_quote(&partner)
        .header("traceparent", &format!("00-{TRACE}-{CALLER}-01"))
        .header("x-request-id", "the-quote");
    let quoted = asked.send().await.assert_status(200).json()["quote"].as_str().unwrap().to_owned();
    let request = span(&collector, TRACE, "POST /api/v1/buy/quote").await;
    assert_eq!((hex(&request.parent_span_id), request.kind), (CALLER.to_owned(), 2));
    assert_eq!(attribute(&request, "rampart.request_id"), "the-quote");
    assert_eq!(attribute(&request, "rampart.partner"), "traced");
    assert_eq!(attribute(&request, "http.response.status_code"), "200");
    let policy = span(&collector, TRACE, "policy fee").await;
    assert_eq!(policy.parent_span_id, request.span_id);
    assert!(attribute(&policy, "rampart.policy.fuel").parse::<u64>().unwrap() > 0);
    let within = |inner: &Span, outer: &Span| {
        inner.start_time_unix_nano >= outer.start_time_unix_nano
            && inner.end_time_unix_nano <= outer.end_time_unix_nano
    };
    assert!(within(&policy, &request) && policy.end_time_unix_nano > policy.start_time_unix_nano);

    let other = TRACE.replace('4', "5");
    let confirmed = confirm(&partner, &quoted)
        .header("traceparent", &format!("00-{other}-{CALLER}-01"))
        .header("tracestate", "shop=cart-7");
    confirmed.send().await.assert_status(200);
    let request = span(&collector, &other, "POST /api/v1/buy/confirm").await;
    let statement = span(&collector, &other, "insert buy_order").await;
    assert_eq!(statement.parent_span_id, request.span_id);
    assert_eq!(attribute(&statement, "db.system.name"), "postgresql");
    assert!(within(&statement, &request));
    let delivery = span(&collector, &other, "deliver order.created").await;
    assert_eq!((&delivery.parent_span_id, delivery.kind), (&request.span_id, 3));
    assert_eq!(attribute(&delivery, "http.response.status_code"), "200");
    let heard = receiver.heard_at_least(1).await.remove(0);
    let sent = format!("00-{other}-{}-01", hex(&delivery.span_id));
    assert_eq!((heard.header("traceparent"), heard.header("tracestate")), (&*sent, "shop=cart-7"));

    let bytes: Vec<u8> = collector.heard().iter().flat_map(|heard| heard.body.to_vec()).collect();
    let all = String::from_utf8_lossy(&bytes);
    for hidden in [WALLET, &quoted, partner.secret("apiKey"), "127.0.0.1"] {
        assert!(!all.contains(hidden), "{hidden} is in a span");
    }
}

#[tokio::test]
async fn a_trace_goes_on_through_what_the_sandbox_does_for_the_order() {
    let collector = Receiver::start().await;
    let edge = traced(&collector, "0").await;
    let partner = edge.partner("followed").await.authenticated().await;
    let receiver = hook(&partner, "order.completed").await;
    let confirmed = order(&partner).await.json();
    let page = confirmed["paymentUrl"].as_str().unwrap().strip_prefix(&edge.url("")).unwrap();
    let pay = partner.anonymous(Method::POST, page).form("action=pay");
    let pay = pay.header("traceparent", &format!("00-{TRACE}-{CALLER}-01"));
    pay.send().await.assert_status(303);
    let request = span(&collector, TRACE, "POST /pay/{token}").await;
    let sent = span(&collector, TRACE, "carry out payout.send").await;
    let arrived = span(&collector, TRACE, "report payout.send").await;
    let parents = [&sent, &arrived].map(|span| &span.parent_span_id);
    assert_eq!(parents, [&request.span_id, &request.span_id]);
    let heard = receiver.heard_at_least(1).await.remove(0);
    assert!(heard.header("traceparent").starts_with(&format!("00-{TRACE}-")));
    let delivery = span(&collector, TRACE, "deliver order.completed").await;
    assert_eq!(delivery.parent_span_id, arrived.span_id);
}

#[tokio::test]
async fn a_trace_goes_on_through_a_connector() {
    let collector = Receiver::start().await;
    let edge = traced(&collector, "0").await;
    let partner = edge.partner("carried").await.authenticated().await;
    let add = "connector add cards --capability payment.create --capability payout.send";
    let add: Vec<_> = add.split(' ').collect();
    let token = printed(&edge, &add).await["token"].as_str().unwrap().to_owned();
    let file = edge.setup().folder().join("routes.json");
    let routes = json!([
        {"partner": "carried", "method": "creditCard", "direction": "in", "connector": "cards"},
        {"partner": "carried", "asset": "BTC", "direction": "out", "connector": "cards"}]);
    std::fs::write(&file, routes.to_string()).unwrap();
    printed(&edge, &["route", "set", file.to_str().unwrap()]).await;

    let quoted = quote(&partner).await["quote"].as_str().unwrap().to_owned();
    let asked = confirm(&partner, &quoted)
        .header("traceparent", &format!("00-{TRACE}-{CALLER}-01"))
        .header("tracestate", "shop=cart-7");
    asked.send().await.assert_status(200);
    let request = span(&collector, TRACE, "POST /api/v1/buy/confirm").await;
    let call = |path: &str, body: Value| {
        let url = format!("http://{}/connectors/v1/commands/{path}", edge.connectors);
        Protocol::Http1.client().post(url).bearer_auth(&token).body(body.to_string())
    };
    let wanted = json!({"max": 1, "waitSeconds": 20, "leaseSeconds": 60});
    let leased: Value = call("lease", wanted).send().await.unwrap().json().await.unwrap();
    let command = &leased[0];
    let lease = span(&collector, TRACE, "lease payment.create").await;
    assert_eq!(lease.parent_span_id, request.span_id);
    assert_eq!(attribute(&lease, "rampart.connector"), "cards");
    assert_eq!(attribute(&lease, "rampart.command_id"), command["id"].as_str().unwrap());
    let carried = format!("00-{TRACE}-{}-01", hex(&lease.span_id));
    let expected = (&json!(carried), &json!("shop=cart-7"));
    assert_eq!((&command["traceparent"], &command["tracestate"]), expected);

    let result = json!({"leaseToken": command["leaseToken"], "outcome": "rejected"});
    let reported = call(&format!("{}/result", command["id"].as_str().unwrap()), result);
    assert_eq!(reported.header("traceparent", carried).send().await.unwrap().status(), 200);
    let told = span(&collector, TRACE, "POST connectors").await;
    assert_eq!(told.parent_span_id, lease.span_id);
}

#[tokio::test]
async fn an_operators_trace_reaches_no_partner() {
    let collector = Receiver::start().await;
    let edge = traced(&collector, "0").await;
    let partner = edge.partner("apart").await.authenticated().await;
    let receiver = hook(&partner, "order.cancelled").await;
    let order = order(&partner).await.json()["orderId"].clone();
    let url = format!("http://{}/admin/v1/orders/{order}/events", edge.admin);
    let cancel = Protocol::Http1.client().post(url).bearer_auth(ADMIN_TOKEN);
    let cancel = cancel
        .header("traceparent", format!("00-{TRACE}-{CALLER}-01"))
        .header("tracestate", "house=till-3")
        .body(json!({"event": "cancel"}).to_string());
    assert_eq!(cancel.send().await.unwrap().status(), 200);
    let heard = receiver.heard_at_least(1).await.remove(0);
    let sent = heard.header("traceparent");
    assert!(!sent.contains(TRACE) && sent.ends_with("-01"), "{sent}");
    assert_eq!(heard.headers.get("tracestate"), None);
    // The collector is told which trace it follows.
    let link = until("the link is there", SOON, async || {
        spans(&collector).into_iter().flat_map(|span| span.links).next()
    })
    .await;
    let caller = (hex(&link.trace_id), hex(&link.span_id));
    assert_eq!(caller, (TRACE.to_owned(), CALLER.to_owned()));
}

#[tokio::test]
async fn what_begins_here_is_a_trace_of_its_own_and_nothing_asked_for_is_in_it() {
    let collector = Receiver::start().await;
    let edge = traced(&collector, "1").await;
    let partner = edge.partner("rooted").await.authenticated().await;
    let order = order(&partner).await.json()["orderId"].clone();
    for parent in ["00-what", &format!("00-{}-{CALLER}-01", "0".repeat(32))] {
        let read =
            partner.request(Method::GET, &format!("/api/v2/buy/orders/{order}?who=canary-1"));
        let read = read.header("traceparent", parent).header("user-agent", "canary-1");
        read.header("x-request-id", "malformed").send().await.assert_status(200);
    }
    let roots = until("both reads are there", SOON, async || {
        let named = |span: &Span| span.name == "GET /api/v2/buy/orders/{id}";
        let found: Vec<_> = spans(&collector).into_iter().filter(named).collect();
        (found.len() == 2).then_some(found)
    })
    .await;
    let traces: BTreeSet<_> = roots.iter().map(|span| hex(&span.trace_id)).collect();
    assert_eq!(traces.len(), 2, "each has an id of its own");
    for root in &roots {
        assert!(root.parent_span_id.is_empty());
        let statement = span(&collector, &hex(&root.trace_id), "select buy_order").await;
        assert_eq!(statement.parent_span_id, root.span_id);
    }
    span(&collector, &worker_trace(&collector).await, "worker snapshot").await;
    let bytes: Vec<u8> = collector.heard().iter().flat_map(|heard| heard.body.to_vec()).collect();
    assert!(!String::from_utf8_lossy(&bytes).contains("canary-1"));
}

/// The trace of a background worker's run.
async fn worker_trace(collector: &Receiver) -> String {
    until("a worker's run is there", SOON, async || {
        let found = spans(collector).into_iter().find(|span| span.name == "worker snapshot")?;
        Some(hex(&found.trace_id))
    })
    .await
}

#[tokio::test]
async fn a_trace_is_recorded_as_its_caller_says() {
    let collector = Receiver::start().await;
    let edge = traced(&collector, "0").await;
    let partner = edge.partner("sampled").await.authenticated().await;
    let receiver = hook(&partner, "order.created").await;
    let quoted = quote(&partner).await["quote"].as_str().unwrap().to_owned();
    let parent = format!("00-{TRACE}-{CALLER}-00");
    confirm(&partner, &quoted).header("traceparent", &parent).send().await.assert_status(200);
    let heard = receiver.heard_at_least(1).await.remove(0);
    let sent = heard.header("traceparent");
    assert!(sent.starts_with(&format!("00-{TRACE}-")) && sent.ends_with("-00"), "{sent}");
    assert!(!sent.contains(CALLER), "{sent}");
    let sampled = ask_quote(&partner).header("traceparent", &format!("00-{TRACE}-{CALLER}-01"));
    sampled.send().await.assert_status(200);
    span(&collector, TRACE, "POST /api/v1/buy/quote").await;
    let all = spans(&collector);
    assert_eq!(all.len(), 1, "{all:?}");
}

#[tokio::test]
async fn without_a_collector_a_callers_trace_still_goes_on() {
    let edge = Edge::shared().await;
    let partner = edge.partner("untraced").await.authenticated().await;
    let receiver = hook(&partner, "order.created").await;
    let quoted = quote(&partner).await["quote"].as_str().unwrap().to_owned();
    let parent = format!("00-{TRACE}-{CALLER}-01");
    confirm(&partner, &quoted).header("traceparent", &parent).send().await.assert_status(200);
    order(&partner).await;
    let heard = receiver.heard_at_least(2).await;
    let sent: Vec<_> = heard.iter().filter_map(|heard| heard.headers.get("traceparent")).collect();
    assert_eq!(sent.len(), 1, "there is one trace");
    assert!(sent[0].to_str().unwrap().starts_with(&format!("00-{TRACE}-")));
}

/// The value of a counter.
async fn dropped(edge: &Edge, cause: &str) -> u64 {
    let text = edge.ops("/metrics").await.assert_status(200).text().to_owned();
    let series = format!(r#"rampart_telemetry_dropped_total{{cause="{cause}"}} "#);
    let line = text.lines().find_map(|line| line.strip_prefix(&series));
    line.map_or(0, |value| value.parse().unwrap())
}

#[tokio::test]
async fn a_collector_in_trouble_holds_nothing_up_and_is_told_of() {
    let collector = Receiver::start().await;
    collector.react(Reaction::status(400));
    let edge = traced(&collector, "1").await;
    let partner = edge.partner("unseen").await;
    let warned = async |sentence: Option<&str>| {
        until(&format!("{sentence:?}"), SOON, async || {
            partner.get("/api/v1/prices").await.assert_status(200);
            let ready = edge.ops("/readyz").await.assert_status(200).json();
            let warnings = ready["warnings"].as_array().unwrap();
            let mut told = warnings.iter().filter_map(|one| one.as_str());
            let told = told.find(|one| one.contains("telemetry.otlp_endpoint"));
            match sentence {
                Some(sentence) => told.is_some_and(|told| told.ends_with(sentence)),
                None => told.is_none(),
            }
            .then_some(())
        })
        .await;
    };
    warned(Some("the collector answers 400")).await;
    until("they are counted", SOON, async || (dropped(&edge, "rejected").await > 0).then_some(()))
        .await;
    collector.react(Reaction::status(200));
    warned(None).await;
    collector.react(Reaction::Silence);
    warned(Some("the collector does not answer in time")).await;
    drop(collector);
    warned(Some("the collector cannot be reached")).await;
    until("they are counted", SOON, async || {
        (dropped(&edge, "collector_away").await > 0).then_some(())
    })
    .await;
}
