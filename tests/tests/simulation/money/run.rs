//! A run: orders in generations, each with rounds of acts that are carried out at the same time on two
//! edges, beside connectors, workers and faults. After each round everything is checked.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::TimeDelta;
use futures::StreamExt as _;
use futures::stream;
use http::Method;
use rampart_core::Core;
use rampart_core::trading::orders::expiry::expire_due;
use rampart_tests::deadline::after;
use serde_json::json;

use super::act::Act;
use super::books::Books;
use super::desk::{Moment, perform};
use super::dice::Dice;
use super::model;
use super::providers::{Provider, decide_screenings, end_leases};
use super::trace;
use super::trade::Trade;
use super::world::{Call, Caller, World};

/// Rounds of a generation.
const ROUNDS: usize = 24;
/// The round after which the time to pay by card is over.
const LATE_ROUND: usize = 15;
/// Rounds in which everybody does what they should, so that all ends.
const LAST_ROUNDS: usize = 30;
/// Tasks at the same time.
const TASKS: usize = 8;
/// Rounds of a hundred in which connections are cut.
const CUTS: usize = 15;
/// Longest time from a round's begin to the cut, in microseconds.
const CUT_MICROS_MAX: usize = 60_000;
/// Runs of a worker of a hundred that are stopped in the middle.
const STOPS: usize = 20;
/// Longest time that a worker has run before it is stopped, in microseconds.
const STOP_MICROS_MAX: usize = 10_000;
const PROVIDERS: [&str; 4] = ["cards", "bank", "chain", "screener"];

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A failure: what is wrong, and the acts that came before.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) round: usize,
    pub(crate) problems: Vec<String>,
    /// The first order that is named: its index, and its script up to then.
    pub(crate) order: Option<(u64, Vec<Act>)>,
    /// The trace of that order, or of what has none.
    pub(crate) trace: Vec<String>,
}

/// Has a pool of deposit addresses made.
pub(crate) async fn fill_pools(world: &Arc<World>) {
    world.contexts[0].core().fill_deposit_pools().await.unwrap();
    let moment = Moment { round: 0, has_faults: false };
    let (name, edge) = ("chain", 0);
    Provider { world, name, edge, moment, is_faithful: true }.serve().await;
}

/// Runs a generation of so many orders, whose indexes begin at `first`.
pub(crate) async fn generation(world: &Arc<World>, first: u64, orders: u64) -> Result<(), Failure> {
    let mut tokens = Vec::new();
    for partner in &world.partners {
        tokens.push(partner.token().await);
    }
    let opened = stream::iter(first..first + orders)
        .map(|index| Trade::open(world, &tokens, index, ROUNDS))
        .buffered(TASKS);
    let trades: Vec<Arc<Trade>> = opened.map(Arc::new).collect().await;
    for round in 0..ROUNDS {
        let moment = Moment { round, has_faults: true };
        self::round(world, &trades, moment, first).await;
        if round == LATE_ROUND {
            world.contexts[0].clock().advance(TimeDelta::hours(2));
        }
        check(world, &trades, round, model::problems).await?;
    }
    finish(world).await;
    check(world, &trades, ROUNDS, |books, truth| {
        let mut found = model::problems(books, truth);
        found.extend(model::unfinished(books, truth));
        found
    })
    .await
}

/// Carries out a round.
async fn round(world: &Arc<World>, trades: &[Arc<Trade>], moment: Moment, first: u64) {
    let number = u64::try_from(moment.round).unwrap();
    let mut dice = Dice::named(world.seed, "round", &[first, number]);
    end_leases(world, false).await;
    if dice.chance(10) {
        set_price(world, &mut dice).await;
    }
    let mut tasks: Vec<Task> = Vec::new();
    for trade in trades {
        let (world, trade) = (Arc::clone(world), Arc::clone(trade));
        tasks.push(Box::pin(async move { perform(&world, &trade, moment).await }));
    }
    for (edge, name) in PROVIDERS.iter().flat_map(|name| [(0, *name), (1, *name)]) {
        let world = Arc::clone(world);
        tasks.push(Box::pin(async move {
            let provider = Provider { world: &world, name, edge, moment, is_faithful: false };
            provider.serve().await;
            if edge == 0 {
                provider.tell_ends().await;
            }
        }));
    }
    for edge in 0..world.contexts.len() {
        let life = match dice.chance(STOPS) {
            true => Duration::from_micros(dice.below(STOP_MICROS_MAX).try_into().unwrap()),
            false => Duration::MAX,
        };
        let world = Arc::clone(world);
        tasks.push(Box::pin(async move {
            // It is stopped in the middle, or loses its connection: the next turn goes on.
            let _ = tokio::time::timeout(life, Box::pin(work(&world, edge))).await;
        }));
    }
    let operator = Arc::clone(world);
    tasks.push(Box::pin(async move { decide_screenings(&operator, moment, false).await }));
    dice.shuffle(&mut tasks);
    let acting = stream::iter(tasks).map(tokio::spawn).buffer_unordered(TASKS);
    let acting = acting.for_each(|ended| async { ended.unwrap() });
    if dice.chance(CUTS) {
        let micros = Duration::from_micros(dice.below(CUT_MICROS_MAX).try_into().unwrap());
        let cut = async {
            after(micros).await;
            world.disconnect().await;
        };
        tokio::join!(acting, cut);
        world.recovered().await;
    } else {
        acting.await;
    }
}

/// A turn of the workers that move orders. What fails is for the next turn.
async fn work(world: &World, edge: usize) -> rampart_core::platform::error::Result<()> {
    world.step();
    let core: &Core = world.contexts[edge].core();
    core.command_payouts().await?;
    core.command_transfers().await?;
    expire_due(core).await?;
    core.settle_sales().await?;
    Ok(())
}

async fn set_price(world: &World, dice: &mut Dice) {
    let price = 90_000 * (970 + dice.below(60)) / 1_000;
    let call = Call {
        edge: 0,
        caller: Caller::Owner,
        method: Method::PUT,
        path: "/admin/v1/prices/BTC-EUR".to_owned(),
        body: json!({ "price": price }),
    };
    let (heard, _) = world.insist(&call, Duration::MAX).await;
    assert_eq!(heard.0, 200, "{}", heard.1);
    world.refresh().await;
}

/// Lets everything that was begun end: connectors do what they should, operators clear what waits for
/// them, and in the end the time to pay is over.
async fn finish(world: &Arc<World>) {
    for round in 0..LAST_ROUNDS {
        let moment = Moment { round: ROUNDS + round, has_faults: false };
        end_leases(world, true).await;
        decide_screenings(world, moment, true).await;
        work(world, 0).await.unwrap();
        for name in PROVIDERS {
            let provider = Provider { world, name, edge: 1, moment, is_faithful: true };
            provider.serve().await;
            provider.tell_ends().await;
        }
        let open = "select count(*) from command where state = 'open' and connector is distinct from 'everything'";
        let db = world.contexts[0].db();
        let open: i64 = sqlx::query_scalar(open).fetch_one(db).await.unwrap();
        if open == 0 && round > 2 {
            break;
        }
    }
    world.contexts[0].clock().advance(TimeDelta::days(8));
    work(world, 1).await.unwrap();
    for name in ["cards", "bank"] {
        let moment = Moment { round: ROUNDS + LAST_ROUNDS, has_faults: false };
        Provider { world, name, edge: 0, moment, is_faithful: true }.serve().await;
    }
}

/// Checks the books by production code and by the model.
async fn check(
    world: &Arc<World>,
    trades: &[Arc<Trade>],
    round: usize,
    problems: impl Fn(&Books, &super::truth::Truth) -> Vec<String>,
) -> Result<(), Failure> {
    let mut found = world.ledger_check().await;
    let books = Books::read(world.contexts[0].db()).await;
    found.extend(problems(&books, &world.truth.lock()));
    if found.is_empty() {
        return Ok(());
    }
    let named = |trade: &&Arc<Trade>| found.iter().any(|text| text.contains(&trade.id.to_string()));
    let trade = trades.iter().find(named);
    let trace = trace::of(world.contexts[0].db(), trade.map(|trade| trade.id)).await;
    let acts = |trade: &Arc<Trade>| trade.script.iter().take(round + 1).copied().collect();
    let order = trade.map(|trade| (trade.index, acts(trade)));
    Err(Failure { round, problems: found, order, trace })
}

/// Plays the acts of one order alone, one after the other, and gives the failure after the first that
/// makes something wrong.
pub(crate) async fn alone(seed: u64, index: u64) -> Option<Failure> {
    let world = Arc::new(Box::pin(World::start(seed)).await);
    fill_pools(&world).await;
    let mut tokens = Vec::new();
    for partner in &world.partners {
        tokens.push(partner.token().await);
    }
    let trade = [Arc::new(Trade::open(&world, &tokens, index, ROUNDS).await)];
    // It may name no order: there is but one.
    let wrong = |failure: Failure| {
        let acts = trade[0].script.iter().take(failure.round + 1).copied().collect();
        Failure { order: Some((index, acts)), ..failure }
    };
    for round in 0..ROUNDS {
        let moment = Moment { round, has_faults: false };
        end_leases(&world, true).await;
        perform(&world, &trade[0], moment).await;
        work(&world, 0).await.unwrap();
        for name in PROVIDERS {
            let provider = Provider { world: &world, name, edge: 0, moment, is_faithful: false };
            provider.serve().await;
            provider.tell_ends().await;
        }
        decide_screenings(&world, moment, false).await;
        if round == LATE_ROUND {
            world.contexts[0].clock().advance(TimeDelta::hours(2));
        }
        if let Err(failure) = check(&world, &trade, round, model::problems).await {
            return Some(wrong(failure));
        }
    }
    finish(&world).await;
    let all = |books: &Books, truth: &super::truth::Truth| {
        [model::problems(books, truth), model::unfinished(books, truth)].concat()
    };
    check(&world, &trade, ROUNDS, all).await.err().map(wrong)
}

/// The calls of a run so far.
pub(crate) fn steps(world: &World) -> usize {
    world.steps.load(Ordering::Relaxed)
}
