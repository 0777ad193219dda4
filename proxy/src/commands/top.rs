//! `rampart top`: a running edge in a terminal, by its metrics: rate, errors, latency, pools, queues,
//! partners.

#[expect(clippy::float_arithmetic, reason = "Prometheus counts and measures in floats")]
mod sample;
#[expect(clippy::float_arithmetic, reason = "Prometheus counts and measures in floats")]
mod screen;

use std::time::Duration;

use clap::Args;
use rampart_core::platform::clock::Clock;
use reqwest::Client;
use tokio::time::{MissedTickBehavior, interval};

use self::sample::Sample;
use self::screen::screen;
use super::{ConfigFile, Run, StartupError};
use crate::admin_client::http_client;
use crate::output;
use crate::server;

/// Longest wait for the edge's metrics.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Moves the cursor home and clears what is below it.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Watch a running edge: rate, errors, latency, pools, queues, partners. Ctrl-C ends it.
///
/// A look that gets no answer says so, and the next one follows; the first one must get an answer.
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Seconds between two looks, 1 to 60.
    #[arg(long, value_name = "SECONDS", default_value_t = 2,
        value_parser = clap::value_parser!(u64).range(1..=60))]
    interval: u64,
    /// End after so many looks, with the failure of the last one if it failed; without it, when it is
    /// told to.
    #[arg(long, value_name = "LOOKS")]
    count: Option<u64>,
    /// URL of the metrics; the `ops` listener of the configuration without it.
    #[arg(long, value_name = "URL")]
    metrics: Option<String>,
    #[command(flatten)]
    settings: ConfigFile,
}

impl Run for Top {
    fn run(self) -> Result<(), StartupError> {
        let url = match &self.metrics {
            Some(url) => url.clone(),
            None => format!("http://{}/metrics", self.settings.load()?.ops.listen),
        };
        let client = http_client(Client::builder().timeout(ANSWER_MAX), None)?;
        server::runtime(1)?.block_on(self.watch(&client, &url))
    }
}

impl Top {
    async fn watch(&self, client: &Client, url: &str) -> Result<(), StartupError> {
        let clock = Clock::system();
        let mut before = read(client, &clock, url).await?;
        let mut ticks = interval(Duration::from_secs(self.interval));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first one is at once.
        ticks.tick().await;
        // A terminal shows each look in the place of the last one; a file has them one after the other.
        let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stdout());
        let (mut looks, mut last) = (0, Ok(()));
        while self.count.is_none_or(|count| looks < count) {
            ticks.tick().await;
            // An edge that is restarted, or has too much to do, answers again.
            let text = match read(client, &clock, url).await {
                Ok(now) => {
                    let text = screen(&before, &now);
                    (before, last) = (now, Ok(()));
                    text
                }
                Err(silent) => {
                    let text = format!("{silent}\n");
                    last = Err(silent);
                    text
                }
            };
            output::answer(if is_terminal { format!("{CLEAR}{text}") } else { text })?;
            looks += 1;
        }
        last
    }
}

async fn read(client: &Client, clock: &Clock, url: &str) -> Result<Sample, StartupError> {
    let silent = |error| StartupError::unanswered(format_args!("'{url}' does not answer"), error);
    let answer = client.get(url).send().await.map_err(silent)?;
    if !answer.status().is_success() {
        return Err(StartupError::from(format!("'{url}' answers {}", answer.status())));
    }
    let text = answer.text().await.map_err(silent)?;
    let sample = Sample::read(&text, clock.monotonic_ns());
    // Zeros all over would look like an edge that has nothing to do.
    if !sample.has("rampart_build_info") {
        return Err(StartupError::from(format!("'{url}' does not answer with an edge's metrics")));
    }
    Ok(sample)
}
