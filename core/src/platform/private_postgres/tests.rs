use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use sqlx::{Connection, PgConnection};

use super::*;

/// A temporary state folder, removed when the test ends.
struct State(PathBuf);

impl State {
    fn new() -> Self {
        let folder = format!("/tmp/rampart-state-{}", random_hex::<8>().unwrap());
        Self(PathBuf::from(folder))
    }

    fn start(&self) -> PrivatePostgres {
        PrivatePostgres::start(self.options()).unwrap()
    }

    fn options(&self) -> Options {
        Options { state: self.0.clone(), bin: None, profile: Profile::Test }
    }

    fn pid_file(&self) -> PathBuf {
        self.0.join("cluster/postmaster.pid")
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

async fn number(url: &str, sql: &'static str) -> i32 {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let number = sqlx::query_scalar::<_, i32>(sql).fetch_one(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    number
}

async fn execute(url: &str, sql: &'static str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn two_servers_run_at_once_and_accept_socket_and_tcp() {
    let (one, two) = (State::new(), State::new());
    let (first, second) = (one.start(), two.start());
    for server in [&first, &second] {
        assert_eq!(number(&server.url("postgres"), "select 1").await, 1);
        assert_eq!(number(&server.tcp_url("postgres"), "select 2").await, 2);
        assert!(
            PgConnection::connect(&server.tcp_url("postgres").replace(&server.password, "x"))
                .await
                .is_err()
        );
    }
    assert_ne!(first.server.port(), second.server.port());
    let sockets = [first.server.socket().to_path_buf(), second.server.socket().to_path_buf()];
    first.stop();
    drop(second);
    assert!(!one.pid_file().exists() && !two.pid_file().exists());
    assert!(sockets.iter().all(|socket| !socket.exists()));
}

#[tokio::test]
async fn a_second_owner_of_a_folder_is_refused() {
    let state = State::new();
    let server = state.start();
    let error = PrivatePostgres::start(state.options()).unwrap_err();
    assert!(error.to_string().contains("another running process"), "{error}");
    assert_eq!(number(&server.url("postgres"), "select 1").await, 1);
}

#[tokio::test]
async fn a_folder_closed_to_the_server_is_replaced_by_one_that_is_not() {
    let closed = State::new();
    DirBuilder::new().mode(0o700).create(&closed.0).unwrap();
    let state = closed.0.join("state");
    let options = Options { state, bin: None, profile: Profile::Test };
    let server = PrivatePostgres::start(options.clone()).unwrap();
    execute(&server.url("postgres"), "create table kept as select 42 as n").await;
    let home = server.home().to_path_buf();
    drop(server);

    let server = PrivatePostgres::start(options).unwrap();
    assert_eq!(server.home(), home);
    assert_eq!(number(&server.url("postgres"), "select n from kept").await, 42);
    drop(server);
    fs::remove_dir_all(home).unwrap();
}

#[tokio::test]
async fn data_survives_a_restart_and_the_death_of_the_supervisor() {
    let state = State::new();
    let mut server = state.start();
    execute(&server.url("postgres"), "create table kept as select 41 as n").await;
    drop(server);

    server = state.start();
    execute(&server.url("postgres"), "update kept set n = n + 1").await;
    // With the shell gone and the pipe held open, nobody but its next user can stop the server.
    let pipe = server.server.shell.stdin.take();
    server.server.shell.kill().unwrap();
    server.server.shell.wait().unwrap();
    assert_eq!(number(&server.url("postgres"), "select n from kept").await, 42);
    drop(server);
    assert!(!state.pid_file().exists(), "the orphan was ended");
    drop(pipe);

    server = state.start();
    assert_eq!(number(&server.url("postgres"), "select n from kept").await, 42);
}

#[tokio::test]
async fn a_pid_file_of_a_dead_or_foreign_process_is_no_obstacle() {
    let state = State::new();
    drop(state.start());
    let mut sleeper = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
    let data = state.0.join("cluster");
    for pid in [sleeper.id(), std::process::id()] {
        let stale = format!("{pid}\n{}\n1\n5432\n/tmp\nlocalhost\n1 1\nready   \n", data.display());
        fs::write(state.pid_file(), stale).unwrap();
        let server = state.start();
        assert_eq!(number(&server.url("postgres"), "select 7").await, 7);
    }
    assert!(sleeper.try_wait().unwrap().is_none(), "the bystander lives");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn a_copy_of_the_lock_in_a_child_keeps_no_folder() {
    let state = State::new();
    let first = state.start();
    let copy = first.lock.try_clone().unwrap();
    drop(first);
    drop(state.start());
    drop(copy);
}

/// Environment variable with the state folder for `an_owner_that_waits_to_be_killed`.
const OWNER_OF: &str = "RAMPART_TEST_OWNER_OF";

#[test]
fn an_ephemeral_server_leaves_no_data_behind() {
    let state = State::new();
    let server =
        PrivatePostgres::start(Options { profile: Profile::Ephemeral, ..state.options() }).unwrap();
    let data = server.home().join("cluster");
    assert!(data.join("PG_VERSION").exists());
    server.stop();
    assert!(!data.join("PG_VERSION").exists());
}

/// The child process of the next test; does nothing without its environment variable.
#[test]
#[expect(clippy::disallowed_methods, reason = "the parameter of the parent process")]
fn an_owner_that_waits_to_be_killed() {
    let Some(folder) = std::env::var_os(OWNER_OF) else { return };
    let state = PathBuf::from(folder);
    let server =
        PrivatePostgres::start(Options { state, bin: None, profile: Profile::Test }).unwrap();
    println!("\nserving {}", server.url("postgres"));
    loop {
        std::thread::park();
    }
}

#[tokio::test]
async fn killing_the_owner_ends_the_server_and_keeps_the_data() {
    let state = State::new();
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "platform::private_postgres::tests::an_owner_that_waits_to_be_killed"])
        .arg("--nocapture")
        .env(OWNER_OF, &state.0)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines().map(Result::unwrap);
    let url = lines.find_map(|line| line.strip_prefix("serving ").map(str::to_owned)).unwrap();
    execute(&url, "create table kept as select 42 as n").await;
    owner.kill().unwrap();
    owner.wait().unwrap();

    assert!(supervisor::within(20, || !state.pid_file().exists()), "the server ends by itself");
    let server = state.start();
    assert_eq!(number(&server.url("postgres"), "select n from kept").await, 42);
}

#[tokio::test]
async fn a_restart_right_after_a_kill_waits_for_the_old_server() {
    let state = State::new();
    let mut first = state.start();
    execute(&first.url("postgres"), "create table kept as select 42 as n").await;
    // The owner's end of the pipe and its lock go, as they do when it is killed.
    drop(first.server.shell.stdin.take());
    fs::remove_file(state.0.join("lock")).unwrap();
    let second = state.start();
    assert_eq!(number(&second.url("postgres"), "select n from kept").await, 42);
}
