//! HAProxy in front of the members: one address that leads to whoever leads them.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::process::Command;

use rampart_tests::port::free;
use rampart_tests::process::Process;

use crate::patroni::Member;
use crate::site::Site;

/// Each member's REST API is asked every second, and the leader alone answers 200. Sessions of a member
/// that leads no more are closed: what uses them would be told for ever that it may only read.
const SETTINGS: &str = "\
global
    maxconn 1000

defaults
    mode tcp
    timeout connect 2s
    timeout client 1h
    timeout server 1h
    timeout check 2s

listen leader
    option httpchk OPTIONS /primary
    http-check expect status 200
    default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
";

/// A running HAProxy. Dropping it ends it.
pub(crate) struct HaProxy {
    /// Address of the leader.
    pub(crate) leader: SocketAddr,
    /// Held for as long as it is to run.
    _process: Process,
}

impl HaProxy {
    /// Starts one in front of these members.
    pub(crate) fn start(site: &Site, members: &[Member]) -> Self {
        let room = site.room("haproxy");
        let leader = free();
        let mut settings = format!("{SETTINGS}    bind {leader}\n");
        for Member { name, postgres, rest, .. } in members {
            let _ = writeln!(settings, "    server {name} {postgres} check port {}", rest.port());
        }
        let file = room.join("haproxy.cfg");
        site.write(&file, &settings);
        let mut command = Command::new("haproxy");
        // In the foreground.
        command.arg("-db").arg("-f").arg(file);
        Self { leader, _process: site.run(&room, command) }
    }
}
