//! A disk that does not keep what Postgres writes: a sync fails, of its log and of its tables. Postgres
//! then trusts nothing that it wrote and recovers from its log, which edges wait for.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rampart_tests::campaign::{Report, Scale};
use rampart_tests::cluster;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Folder;
use rampart_tests::postgres_server::PostgresServer;
use rampart_tests::repository;

use crate::fleet::Fleet;
use rampart_tests::journal::Fault;

/// Makes the programs of a server whose syncs can fail, in this folder: `$1` prints the folder of the
/// real ones, `$2` is the library's source. Written by the shell, which has closed `postgres` when it
/// is run: of this process another thread's child might still hold it.
const MAKE: &str = r#"set -e
umask 022
real=$("$1")
cc -shared -fPIC -o failing-sync.so "$2"
ln -s "$real/initdb" initdb
cat >postgres <<END
#!/bin/sh
ulimit -c 0
export LD_PRELOAD='$PWD/failing-sync.so'
exec '$real/postgres' "\$@"
END
chmod 755 postgres
"#;
/// Files that ask for a failure: of a sync of the log, and of tables, which checkpoints sync.
const LOG: &str = "fail-sync-of-log";
const TABLES: &str = "fail-sync-of-tables";
/// Confirms between two failures, in the full and the short form.
const APART: usize = 400;
const SHORT_APART: usize = 50;

pub(crate) async fn failed(scale: Scale) -> Report {
    let programs = programs().await;
    let place = if scale.is_exact() { std::env::temp_dir() } else { cluster::folder() };
    let state = place.join(format!("rampart-syncs-{}", std::process::id()));
    let postgres = PostgresServer::start_of(Some(programs.path().to_owned()), state).await;
    let fleet = Fleet::over(postgres, 2, |_| ()).await;
    let load = fleet.load();
    let mut fault = Fault { injected: 0, recovery: Duration::ZERO };
    let apart = if scale.is_exact() { APART } else { SHORT_APART };
    for request in [LOG, TABLES].repeat(scale.of(1, 10)) {
        load.reach(load.acknowledged() + apart).await;
        fail(&fleet, request).await;
        fault.injected += 1;
        fault.recovery = fault.recovery.max(fleet.recovery(&load).await);
    }
    let mut report = load.finish().await.reconcile(&fleet.pool().await, &fault).await;
    let panics = fleet.postgres.log().matches("PANIC: ").count();
    report.require(panics == fault.injected, || {
        format!("Postgres went on after a sync that failed: {panics} of {}", fault.injected)
    });
    report
}

/// The folder of such programs.
async fn programs() -> Folder {
    let folder = Folder::make();
    // For the account of servers.
    fs::set_permissions(folder.path(), Permissions::from_mode(0o711)).unwrap();
    let mut make = Command::new("/bin/sh");
    make.args(["-c", MAKE, "make"]).current_dir(folder.path());
    make.args(["deploy/find-postgres", "tests/chaos/failing_sync.c"].map(in_repository));
    let made = tokio::task::spawn_blocking(move || make.output().unwrap()).await.unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    folder
}

fn in_repository(path: &str) -> PathBuf {
    repository::root().join(path)
}

/// Has the next sync of the log or of tables fail, and waits until it has.
async fn fail(fleet: &Fleet, request: &str) {
    let request_file = fleet.postgres.cluster_folder().join(request);
    let db = fleet.pool().await;
    File::create(&request_file).unwrap();
    until("a sync fails", SOON, async || {
        if request == TABLES {
            // It fails with the sync.
            let _ = sqlx::query("checkpoint").execute(&db).await;
        }
        (!request_file.exists()).then_some(())
    })
    .await;
}
