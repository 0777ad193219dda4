//! The sandbox's scenarios, each run exactly as it is listed, with nothing but the API key of a test
//! client.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::caller::Caller;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;
use serde_json::Value;

const SCENARIOS: &str = "/api/v2/sandbox/scenarios";

/// One run of a scenario: the names that it fills in.
struct Run<'a> {
    shop: &'a Caller,
    names: BTreeMap<String, String>,
}

impl<'a> Run<'a> {
    fn new(shop: &'a Caller, index: usize) -> Self {
        let names = [
            ("apiKey".to_owned(), shop.secret("apiKey").to_owned()),
            ("random".to_owned(), format!("run{index:0>33}")),
        ];
        Self { shop, names: names.into() }
    }

    fn fill(&self, text: &Value) -> String {
        let text = text.as_str().unwrap().to_owned();
        let filled = self
            .names
            .iter()
            .fold(text, |text, (name, value)| text.replace(&format!("{{{{{name}}}}}"), value));
        assert!(!filled.contains("{{"), "an unknown name: {filled}");
        filled
    }

    async fn send(&self, request: &Value) -> Answer {
        let method: Method = request["method"].as_str().unwrap().parse().unwrap();
        let mut sent = self.shop.anonymous(method, &self.fill(&request["path"]));
        for (name, value) in request["headers"].as_object().unwrap() {
            sent = sent.header(name, &self.fill(value));
        }
        if !request["body"].is_null() {
            sent = sent.body(self.fill(&request["body"]));
        }
        sent.send().await
    }

    /// Sends a request so many times as it says; the last answer.
    async fn send_all(&self, request: &Value) -> Answer {
        let mut answer = self.send(request).await;
        for _ in 1..request["times"].as_u64().unwrap() {
            answer = self.send(request).await;
        }
        answer
    }

    /// Saves what the request says; the value that the answer does not have, if one.
    fn save(&mut self, request: &Value, answer: &Answer) -> Result<(), String> {
        for (name, pointer) in request["saves"].as_object().unwrap() {
            let json = answer.json();
            let saved = json.pointer(pointer.as_str().unwrap());
            let saved = saved.ok_or_else(|| format!("{}: no {pointer}", answer.text()))?;
            let text = saved.as_str().map_or_else(|| saved.to_string(), str::to_owned);
            self.names.insert(name.clone(), text);
        }
        Ok(())
    }

    /// Runs a scenario; what is not as it says, if anything.
    async fn play(mut self, scenario: &Value) -> Result<(), String> {
        let requests = scenario["requests"].as_array().unwrap();
        let (last, earlier) = requests.split_last().unwrap();
        for request in earlier {
            let answer = self.send_all(request).await;
            if !(200..300).contains(&answer.status()) {
                return Err(format!("{}: {} {}", request["path"], answer.status(), answer.text()));
            }
            self.save(request, &answer)?;
        }
        let answer = match last["poll"].as_bool().unwrap() {
            true => {
                let what = format!("{} shows its state", scenario["name"]);
                until(&what, SOON, async || {
                    let answer = self.send(last).await;
                    (shown(scenario, &answer) == scenario["status"]).then_some(answer)
                })
                .await
            }
            false => self.send_all(last).await,
        };
        let codes: Vec<_> = scenario["code"].as_str().into_iter().collect();
        let fits = scenario["httpStatus"] == answer.status()
            && answer.codes() == codes
            && shown(scenario, &answer) == scenario["status"];
        if !fits {
            return Err(format!("{} {}", answer.status(), answer.text()));
        }
        // A program that follows the list saves from the last answer as from any other.
        self.save(last, &answer)
    }
}

/// The state that an answer shows where the scenario says so.
fn shown(scenario: &Value, answer: &Answer) -> Value {
    let pointer = scenario["statusAt"].as_str();
    let json = answer.json();
    pointer.and_then(|pointer| json.pointer(pointer)).cloned().unwrap_or_default()
}

#[tokio::test]
async fn every_scenario_is_as_it_is_listed() {
    // Each is looked at until it is in its last state: the time between two steps shows nothing.
    let edge = Edge::with(|setup| _ = setup.set("sandbox.step_ms", "50")).await;
    let shop = edge.partner("shop").await;
    let listed = shop.get(SCENARIOS).await.assert_status(200).json();
    let listed = listed.as_array().unwrap();
    let mut report = String::new();
    for (index, scenario) in listed.iter().enumerate() {
        if let Err(unlike) = Run::new(&shop, index).play(scenario).await {
            report += &format!("{}: {unlike}\n", scenario["name"]);
        }
    }
    let texts = |entries: &Value, name: &str| -> BTreeSet<String> {
        let entries = entries.as_array().unwrap().iter();
        entries.filter_map(|entry| entry[name].as_str().map(str::to_owned)).collect()
    };
    let catalogue = shop.get("/api/v2/system/errors").await.assert_status(200).json();
    let provoked = texts(&Value::Array(listed.clone()), "code");
    for code in texts(&catalogue, "code").difference(&provoked) {
        report += &format!("{code}: no scenario provokes it\n");
    }
    assert!(report.is_empty(), "\n{report}");
}
