//! Prometheus, which scrapes edges and members with the rules that are shipped.

use std::net::SocketAddr;
use std::process::Command;

use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;
use rampart_tests::port::free;
use rampart_tests::process::Process;
use rampart_tests::repository::root;
use serde_json::Value;
use url::Url;

use crate::patroni::Member;
use crate::site::Site;

/// A running Prometheus. Dropping it ends it.
pub(crate) struct Prometheus {
    address: SocketAddr,
    http: reqwest::Client,
    process: Process,
}

impl Prometheus {
    /// Starts one that scrapes these every second.
    pub(crate) fn start(site: &Site, edges: &[Edge], members: &[Member]) -> Self {
        let room = site.room("prometheus");
        let address = free();
        let quoted = |targets: Vec<SocketAddr>| {
            let quoted: Vec<_> = targets.iter().map(|target| format!("'{target}'")).collect();
            quoted.join(", ")
        };
        let settings = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 5s }}\n\
             rule_files: ['{rules}']\n\
             scrape_configs:\n\
             - job_name: rampart\n  static_configs: [{{ targets: [{edges}] }}]\n\
             - job_name: patroni\n  static_configs: [{{ targets: [{members}] }}]\n",
            rules = root().join("deploy/prometheus/rules.yaml").display(),
            edges = quoted(edges.iter().map(|edge| edge.ops).collect()),
            members = quoted(members.iter().map(|member| member.rest).collect()),
        );
        site.write(&room.join("prometheus.yaml"), &settings);
        // It knows where the program is, which no package has started.
        let mut command = Command::new(root().join("deploy/validators"));
        command.args(["prometheus", "--config.file=prometheus.yaml", "--storage.tsdb.path=series"]);
        command.arg(format!("--web.listen-address={address}")).current_dir(&room);
        let http = reqwest::Client::builder().no_proxy().timeout(SOON).build().unwrap();
        Self { address, http, process: Process::spawn(command) }
    }

    /// The values of a query's series, once it gives some.
    pub(crate) async fn values(&self, query: &str) -> Vec<String> {
        let base = format!("http://{}/api/v1/query", self.address);
        let url = Url::parse_with_params(&base, [("query", query)]).unwrap();
        until("Prometheus has series", SOON, async || {
            assert!(self.process.status().is_none(), "{:?}", self.process.err());
            let answer: Value = self.http.get(url.clone()).send().await.ok()?.json().await.ok()?;
            assert_ne!(answer["errorType"], "bad_data", "{query}: {answer}");
            let series = answer["data"]["result"].as_array()?.iter();
            let values = series.filter_map(|series| Some(series["value"][1].as_str()?.to_owned()));
            Some(values.collect::<Vec<_>>()).filter(|values| !values.is_empty())
        })
        .await
    }
}
