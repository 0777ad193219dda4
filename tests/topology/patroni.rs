//! Three Postgres under Patroni, which agree by etcd on one leader. A commit waits for a second member.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rampart_core::platform::clock::Clock;
use rampart_tests::deadline::until;
use rampart_tests::port::free;
use rampart_tests::process::Process;
use rampart_tests::repository::root;
use serde_json::{Value, json};

use crate::site::{Site, kill_below};

/// Members.
pub(crate) const MEMBERS: usize = 3;
/// Lease of the leader: another one follows when it has not been renewed for so long. Patroni's least.
const TTL_SECONDS: u32 = 20;
/// Interval at which members look, and the leader renews its lease.
const LOOP_WAIT_SECONDS: u32 = 2;
/// Time for which etcd or Postgres may fail before the leader steps down. Twice this and an interval are
/// within the lease.
const RETRY_TIMEOUT_SECONDS: u32 = 5;
/// Longest wait for etcd, for members that copy the leader, and for a killed one that comes back.
const WHOLE_WITHIN: Duration = Duration::from_secs(180);
/// Longest wait for another leader.
const LEADER_WITHIN: Duration = Duration::from_secs(90);
/// Longest wait for Patroni's REST API.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// The members, and the store by which they agree.
pub(crate) struct Patroni {
    members: Vec<Member>,
    /// Password of every role.
    pub(crate) password: String,
    http: reqwest::Client,
    _etcd: Process,
}

/// A member.
pub(crate) struct Member {
    /// Its name.
    pub(crate) name: String,
    room: PathBuf,
    /// Address of its Postgres.
    pub(crate) postgres: SocketAddr,
    /// Address of its REST API.
    pub(crate) rest: SocketAddr,
    process: Process,
}

impl Patroni {
    /// Starts etcd and the members; the first that comes makes the cluster, the others copy it.
    pub(crate) async fn start(site: &Site) -> Self {
        let password = Clock::system().uuid().unwrap().simple().to_string();
        let (etcd, address) = etcd(site);
        let http = reqwest::Client::builder().no_proxy().timeout(ANSWER_WITHIN).build().unwrap();
        until("etcd answers", WHOLE_WITHIN, async || {
            assert!(etcd.status().is_none(), "{:?}", etcd.err());
            let answer = http.get(format!("http://{address}/health")).send().await.ok()?;
            answer.status().is_success().then_some(())
        })
        .await;
        let members = (1..=MEMBERS).map(|number| Member::start(site, number, address, &password));
        let patroni = Self { members: members.collect(), password, http, _etcd: etcd };
        patroni.whole().await;
        patroni
    }

    /// The members.
    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// The place of the member that leads, once one does; not of the one at `but`.
    pub(crate) async fn leader(&self, but: Option<usize>) -> usize {
        until("a member leads", LEADER_WITHIN, async || {
            for (place, member) in self.members.iter().enumerate() {
                let url = format!("http://{}/primary", member.rest);
                if Some(place) != but
                    && let Ok(answer) = self.http.get(url).send().await
                    && answer.status().is_success()
                {
                    return Some(place);
                }
            }
            None
        })
        .await
    }

    /// Waits until every member runs, none is behind, and one of them keeps every commit with the leader.
    pub(crate) async fn whole(&self) {
        until("the cluster is whole", WHOLE_WITHIN, async || {
            for member in &self.members {
                assert!(member.process.status().is_none(), "{:?}", member.process.err());
            }
            let shown = self.http.get(format!("http://{}/cluster", self.members[0].rest));
            let shown: Value = shown.send().await.ok()?.json().await.ok()?;
            is_whole(shown["members"].as_array()?).then_some(())
        })
        .await;
    }

    /// Sends SIGKILL to Patroni and to every process of Postgres at this place.
    pub(crate) fn kill(&self, place: usize) {
        let member = &self.members[place];
        // First: it would start Postgres again.
        member.process.kill();
        kill_below(&member.room);
    }

    /// Starts a member again that was killed, and waits until the cluster is whole.
    pub(crate) async fn restart(&mut self, site: &Site, place: usize) {
        let member = &mut self.members[place];
        member.process = site.run(&member.room, command());
        self.whole().await;
    }
}

fn is_whole(members: &[Value]) -> bool {
    let all = |holds: fn(&Value) -> bool| members.iter().all(holds);
    let is = |role: &'static str| members.iter().filter(move |member| member["role"] == role);
    members.len() == MEMBERS
        && is("leader").count() == 1
        && is("sync_standby").count() == 1
        && all(|member| member["state"] == "running" || member["state"] == "streaming")
        && all(|member| member["role"] == "leader" || member["lag"] == 0)
        && members.iter().all(|member| member["timeline"] == members[0]["timeline"])
}

impl Member {
    fn start(site: &Site, number: usize, etcd: SocketAddr, password: &str) -> Self {
        let name = format!("member-{number}");
        let room = site.room(&name);
        let (postgres, rest) = (free(), free());
        let settings = json!({
            "scope": "rampart",
            "name": name,
            "restapi": {"listen": rest, "connect_address": rest},
            "etcd3": {"host": etcd},
            "bootstrap": {
                "dcs": {
                    "ttl": TTL_SECONDS,
                    "loop_wait": LOOP_WAIT_SECONDS,
                    "retry_timeout": RETRY_TIMEOUT_SECONDS,
                    "synchronous_mode": true,
                    "postgresql": {"use_pg_rewind": true, "use_slots": true},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "no-instructions"],
            },
            "postgresql": {
                "listen": postgres,
                "connect_address": postgres,
                "data_dir": room.join("cluster"),
                "bin_dir": programs(),
                "pgpass": room.join("pgpass"),
                "authentication": {
                    "superuser": {"username": "postgres", "password": password},
                    "replication": {"username": "replicator", "password": password},
                    "rewind": {"username": "rewinder", "password": password},
                },
                "parameters": {
                    "unix_socket_directories": room,
                    // In the room: shared memory of a server that is killed would stay.
                    "dynamic_shared_memory_type": "mmap",
                },
                "pg_hba": [
                    "local all all peer",
                    "host all all 127.0.0.1/32 scram-sha-256",
                    "host replication replicator 127.0.0.1/32 scram-sha-256",
                ],
                "remove_data_directory_on_rewind_failure": true,
                "remove_data_directory_on_diverged_timelines": true,
            },
        });
        // JSON is YAML.
        site.write(&room.join("patroni.yaml"), &settings.to_string());
        let process = site.run(&room, command());
        Self { name, room, postgres, rest, process }
    }
}

fn command() -> Command {
    let mut command = Command::new("patroni");
    command.arg("patroni.yaml");
    command
}

fn etcd(site: &Site) -> (Process, SocketAddr) {
    let room = site.room("etcd");
    let (clients, peers) = (free(), free());
    let mut command = Command::new("etcd");
    command.args(["--name", "etcd", "--data-dir", "store", "--logger", "zap"]);
    for option in ["--listen-client-urls", "--advertise-client-urls"] {
        command.arg(format!("{option}=http://{clients}"));
    }
    for option in ["--listen-peer-urls", "--initial-advertise-peer-urls"] {
        command.arg(format!("{option}=http://{peers}"));
    }
    command.arg(format!("--initial-cluster=etcd=http://{peers}"));
    (site.run(&room, command), clients)
}

/// The folder of Postgres's programs.
fn programs() -> PathBuf {
    let script = root().join("deploy/find-postgres");
    let found = Command::new(script).output().unwrap();
    let folder = String::from_utf8(found.stdout).unwrap();
    assert!(found.status.success(), "`deploy/setup` installs PostgreSQL");
    folder.trim().into()
}
