//! State that lasts from one statement to the next on a connection.
//!
//! A pooler in transaction mode gives each transaction any connection of its own. Settings are then
//! the transaction's, every statement is in one, and a prepared statement is gone when it ends.

use std::time::Duration;

use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgStatement};
use sqlx::{Error, Execute, Postgres, SqlStr};

use super::summary::{spans, summary};
use super::tenant;
use crate::platform::telemetry::Spans;

/// Time after which the server ends a session that waits within a transaction, in milliseconds.
const IDLE_IN_TRANSACTION_MS: u128 = 10_000;

/// The server's side of a connection: it ends one whose edge has vanished, with what it has locked,
/// after 30 s of silence. In seconds, a number, and milliseconds.
pub(super) const KEEPALIVES: [(&str, &str); 4] = [
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "4"),
    ("tcp_user_timeout", "30000"),
];

/// The settings of a pool's connections, and where they are kept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Session {
    /// The server keeps a connection's settings.
    pub(super) keeps_settings: bool,
    /// The server keeps a connection's prepared statements.
    pub(super) keeps_statements: bool,
    /// Time after which the server ends a statement by itself.
    pub(super) statement_timeout: Duration,
}

impl Session {
    /// The options of a connection, with the settings if it keeps them. A pooler's connections to the
    /// server have keepalives of its own.
    pub(super) fn connect_options(&self, options: &PgConnectOptions) -> PgConnectOptions {
        // Poolers do not know it, and no float is read as text.
        let options = options.clone().extra_float_digits(None);
        if !self.keeps_settings {
            return options.statement_cache_capacity(if self.keeps_statements { 100 } else { 0 });
        }
        options.options(self.settings()).options(KEEPALIVES)
    }

    fn settings(&self) -> [(&'static str, String); 3] {
        [
            ("statement_timeout", self.statement_timeout.as_millis().to_string()),
            ("idle_in_transaction_session_timeout", IDLE_IN_TRANSACTION_MS.to_string()),
            // By what the planner expects of long statements, such as the lease of commands, it would
            // compile them anew each time: seconds for some milliseconds of work.
            ("jit", "off".to_owned()),
        ]
    }

    /// True if a statement must be in a transaction: its settings are the transaction's.
    pub(super) fn wants_transaction(&self) -> bool {
        !self.keeps_settings || !tenant::settings().is_empty()
    }

    /// The statements that begin a transaction of this task, in one round trip.
    pub(super) fn begin(&self) -> String {
        let mut begin = "begin".to_owned();
        if !self.keeps_settings {
            for (name, value) in self.settings() {
                begin.push_str("; set local ");
                begin.push_str(name);
                begin.push_str(" = ");
                begin.push_str(&value);
            }
        }
        begin.push_str(&tenant::settings());
        begin
    }
}

/// A statement that has been taken out of its query, so that it can wait for its transaction.
pub(super) struct Statement {
    sql: SqlStr,
    arguments: Option<PgArguments>,
    persistent: bool,
}

impl Statement {
    /// The statement of a query, on a connection of this session.
    ///
    /// # Errors
    /// When an argument cannot be encoded.
    pub(super) fn of<'q>(
        mut query: impl Execute<'q, Postgres>,
        session: Session,
    ) -> Result<Self, Error> {
        let arguments = query.take_arguments().map_err(Error::Encode)?;
        let persistent = session.keeps_statements && query.persistent();
        Ok(Self { sql: query.sql(), arguments, persistent })
    }

    /// Its spans, begun.
    pub(super) fn spans(&self) -> Spans {
        spans(|| summary(self.sql.as_str()).into())
    }

    /// True if it only reads: nothing is lost when its transaction is rolled back.
    pub(super) fn is_read(&self) -> bool {
        let sql = self.sql.as_str().trim_start();
        sql.get(..7).is_some_and(|word| {
            word.eq_ignore_ascii_case("select ") || word.eq_ignore_ascii_case("select\n")
        })
    }
}

impl Execute<'static, Postgres> for Statement {
    fn sql(self) -> SqlStr {
        self.sql
    }

    fn statement(&self) -> Option<&PgStatement> {
        None
    }

    fn take_arguments(&mut self) -> Result<Option<PgArguments>, BoxDynError> {
        Ok(self.arguments.take())
    }

    fn persistent(&self) -> bool {
        self.persistent
    }
}

#[cfg(test)]
mod tests {
    use rampart_types::ClientId;
    use uuid::Uuid;

    use super::super::pool_kind::PoolKind;
    use super::*;

    fn session(keeps: bool) -> Session {
        let statement_timeout = Duration::from_secs(2);
        Session { keeps_settings: keeps, keeps_statements: keeps, statement_timeout }
    }

    #[tokio::test]
    async fn a_transaction_names_what_it_may_see_and_what_its_connection_forgets() {
        let forgotten = "begin; set local statement_timeout = 2000; \
                         set local idle_in_transaction_session_timeout = 10000; \
                         set local jit = off";
        let (one, other) = (ClientId::from(Uuid::nil()), ClientId::from(Uuid::max()));
        let named = format!("begin; set local rampart.client_id = '{one}'");
        tenant::run(None, async {
            assert_eq!(session(true).begin(), "begin");
            assert_eq!(session(false).begin(), forgotten);
            assert!(!session(true).wants_transaction() && session(false).wants_transaction());
            tenant::enter(one);
            tenant::enter(other);
            assert_eq!(session(true).begin(), named, "the first one counts");
            assert!(session(true).wants_transaction());
        })
        .await;
        let all = "begin; set local rampart.all_tenants = 'on'";
        assert_eq!(session(true).begin(), all, "what is no request is the edge's own work");
        PoolKind::Workers.run(async { assert_eq!(session(true).begin(), all) }).await;
    }

    #[test]
    fn a_connection_that_keeps_settings_asks_for_keepalives() {
        let options = |keeps| session(keeps).connect_options(&PgConnectOptions::new());
        let kept = options(true);
        let kept = kept.get_options().unwrap();
        for (name, value) in KEEPALIVES {
            assert!(kept.contains(&format!("-c {name}={value}")), "{kept}");
        }
        assert_eq!(options(false).get_options(), None);
    }

    #[test]
    fn a_read_is_known_by_its_first_word() {
        let of = |sql: &'static str| Statement::of(sql, session(true)).unwrap().is_read();
        assert!(of("select 1") && of("\n    SELECT\nx from y"));
        assert!(
            !of("with x as (insert into y default values) select 1") && !of("update x set y = 1")
        );
        assert!(!of("selected") && !of("sel"));
    }
}
