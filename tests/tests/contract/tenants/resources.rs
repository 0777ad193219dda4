//! Two clients with three users, and what is theirs.

mod made;

use std::sync::atomic::{AtomicU32, Ordering};

use http::Method;
use rampart_core::endpoint::Route;
use rampart_tests::answer::Answer;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::User;
use serde_json::{Value, json};

use self::made::{at, confirm, offer_for, proof, under, with};
use super::callers::{Standing, Tenant};
use super::traces;

const UNLIMITED: &str = "1000000/s burst 1000000";
/// Accounts of Ann, Bob and Eve.
const IBANS: [&str; 3] = ["NL91ABNA0417164300", "DE89370400440532013000", "BE68539007547034"];

/// The owner of a thing. Ann and Bob are users of one client, Eve of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Ann,
    Bob,
    Eve,
    Nobody,
}

impl Owner {
    pub(super) const ALL: [Self; 4] = [Self::Ann, Self::Bob, Self::Eve, Self::Nobody];

    pub(super) const fn tenant(self) -> Option<Tenant> {
        match self {
            Self::Ann | Self::Bob => Some(Tenant::Acme),
            Self::Eve => Some(Tenant::Rival),
            Self::Nobody => None,
        }
    }
}

/// The callers of a client that may see a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Its user, and the client itself where it names no user.
    User,
    /// Its user alone.
    Oneself,
    /// Whoever is the client.
    Client,
}

/// A kind of thing that a request can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    Order,
    OrderReference,
    /// An order whose coins have arrived.
    CompletedOrder,
    /// An order whose wallet the caller's client asserts to be the user's.
    Wallet,
    Sale,
    SaleReference,
    Plan,
    Event,
    Webhook,
    /// A quote that was made for the user.
    BuyQuote,
    SellQuote,
    /// Such a quote, confirmed under an offer of the caller's client.
    QuoteUnderOffer,
    /// An offer, confirmed with a quote of the caller's client.
    Offer,
    Card,
    /// A card that pays for a purchase, with a quote of the caller's client.
    Payer,
    /// A card that a sale is paid out to, likewise.
    Payee,
    /// Address and password of a user.
    Login,
    Email,
    OnboardingUrl,
    /// A user's login token, for an offer.
    LoginToken,
}

/// A path and a body that name something.
pub(crate) struct Named {
    pub(crate) path: String,
    pub(crate) body: Value,
}

/// Resources that every owner has from the start.
struct Marks {
    order: i64,
    sale: i64,
    plan: String,
    webhook: String,
}

/// Everybody, and what they have.
pub(crate) struct Cast {
    pub(crate) context: TestContext,
    pub(crate) acme: Partner,
    pub(super) rival: Partner,
    pub(crate) ann: User,
    pub(super) bob: User,
    pub(super) eve: User,
    /// Ids of Ann, Bob and Eve.
    pub(super) uuids: [String; 3],
    pub(super) traces: String,
    marks: Vec<Marks>,
    number: AtomicU32,
}

impl Cast {
    pub(crate) async fn gather() -> Self {
        let context = TestContext::start().await;
        let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
        let rates = ["client", "quotes", "credentials", "login", "uploads"];
        let rates: Value = rates.map(|bucket| (bucket, UNLIMITED)).into_iter().collect();
        for slug in ["acme", "rival"] {
            let path = format!("/admin/v1/partners/{slug}");
            let rates = json!({ "rateLimits": rates });
            context.admin(Method::PATCH, &path, rates).await.assert_status(200);
        }
        let (ann, bob) = (acme.user("ann").await, acme.user("bob").await);
        let eve = rival.user("eve").await;
        let mut uuids = Vec::new();
        for user in [&ann, &bob, &eve] {
            uuids.push(user.log_in().await["uuid"].as_str().unwrap().to_owned());
        }
        let traces = traces::statement(context.db()).await;
        let uuids = uuids.try_into().unwrap();
        let (marks, number) = (Vec::new(), AtomicU32::new(0));
        let mut cast = Self { context, acme, rival, ann, bob, eve, uuids, traces, marks, number };
        for owner in [Owner::Ann, Owner::Bob, Owner::Eve] {
            let marks = cast.mark(owner).await;
            cast.marks.push(marks);
        }
        cast
    }

    /// Gives an owner one of everything.
    async fn mark(&self, owner: Owner) -> Marks {
        let path = format!("/admin/v1/users/{}", self.uuids[owner as usize]);
        let limits = json!({"limitOverrides": {"user_day_limit": 100_000_000}});
        self.context.admin(Method::PATCH, &path, limits).await.assert_status(200);
        let iban = json!({"type": "bankTransfer", "identifier": IBANS[owner as usize],
            "name": "Holder"});
        let accounts = format!("{path}/accounts");
        self.context.admin(Method::POST, &accounts, iban).await.assert_status(201);
        let reference = format!("of-{owner:?}");
        let hook = format!("https://{owner:?}.example/hook").to_lowercase();
        let partner = &self.user(owner).partner;
        partner.post("/api/v2/webhooks", json!({ "url": hook })).await.assert_status(200);
        Marks {
            order: self.order(owner, &reference).await,
            sale: self.sale(owner, &reference).await,
            plan: self.plan(owner).await,
            webhook: hook,
        }
    }

    pub(super) fn user(&self, owner: Owner) -> &User {
        match owner {
            Owner::Ann => &self.ann,
            Owner::Bob => &self.bob,
            Owner::Eve | Owner::Nobody => &self.eve,
        }
    }

    /// The client that the caller is.
    pub(super) fn partner(&self, standing: &Standing) -> &Partner {
        match standing {
            Standing::For { tenant: Tenant::Rival, .. } => &self.rival,
            _ => &self.acme,
        }
    }

    /// A number that was not used before.
    pub(super) fn next(&self) -> u32 {
        self.number.fetch_add(1, Ordering::Relaxed)
    }

    /// Texts that tell of an owner.
    fn telltales(&self, owner: Owner) -> Vec<String> {
        let (user, marks) = (self.user(owner), &self.marks[owner as usize]);
        vec![
            self.uuids[owner as usize].clone(),
            user.email.clone(),
            user.identifier.clone(),
            IBANS[owner as usize].to_owned(),
            marks.order.to_string(),
            marks.sale.to_string(),
            marks.plan.clone(),
        ]
    }

    /// A text that tells of an owner, by what is asked for.
    pub(super) fn telltale(&self, owner: Owner, thing: Thing) -> String {
        let marks = &self.marks[owner as usize];
        match thing {
            Thing::Order | Thing::Event => marks.order.to_string(),
            Thing::Sale => marks.sale.to_string(),
            Thing::Plan => marks.plan.clone(),
            Thing::Webhook => marks.webhook.clone(),
            Thing::Card => IBANS[owner as usize].to_owned(),
            _ => self.user(owner).email.clone(),
        }
    }

    /// Panics when an answer tells anything of whom the caller does not stand for.
    pub(super) fn assert_shows_nothing_of_others(
        &self,
        standing: &Standing,
        answer: &Answer,
        case: &str,
    ) {
        for owner in [Owner::Ann, Owner::Bob, Owner::Eve] {
            if standing.sees(owner, Scope::User) {
                continue;
            }
            for text in self.telltales(owner) {
                assert!(!answer.text().contains(&text), "{owner:?}'s {text} is told: {case}");
            }
        }
    }

    /// A client has 50 endpoints at most: those that were made for one request go again.
    pub(super) async fn remove_spare_webhooks(&self) {
        let spare = "delete from webhook_endpoint where url like '%/spare'";
        sqlx::query(spare).execute(self.context.db()).await.unwrap();
    }

    /// A request of `route` that names a thing of the owner, made for it. `by` is the client that
    /// will ask.
    pub(crate) async fn name(
        &self,
        route: &Route,
        thing: Thing,
        owner: Owner,
        by: &Partner,
    ) -> Named {
        if owner != Owner::Nobody {
            return self.name_made(route, thing, owner, by).await;
        }
        let id = "019c1f5e-7c0a-7d52-9d3f-2b8a4e6f1c70";
        let nobody = "nobody@mail.example.com";
        match thing {
            Thing::Order | Thing::CompletedOrder | Thing::Sale => at(route, "1742980455013377"),
            Thing::OrderReference | Thing::SaleReference => at(route, "of-Nobody"),
            Thing::Wallet => proof(route, 1_742_980_455_013_377, by),
            Thing::Plan => at(route, "7K2M9QXT4B8D"),
            Thing::Event | Thing::Webhook => at(route, id),
            Thing::BuyQuote => with(route, confirm("eyJhbGciOiJkaXIifQ..a.b.c")),
            Thing::SellQuote => with(route, json!({"quote": "eyJhbGciOiJkaXIifQ..a.b.c"})),
            Thing::QuoteUnderOffer => {
                let offer = self.offer(by).await;
                with(route, under("eyJhbGciOiJkaXIifQ..a.b.c", &offer))
            }
            Thing::Offer => with(route, under(&self.free_quote(by).await, id)),
            Thing::Card => with(route, json!({"accountIdentifier": "411111******0000"})),
            Thing::Payer => with(route, self.paid_by("411111******0000", by).await),
            Thing::Payee => with(route, self.paid_to("411111******0000", by).await),
            Thing::Login => with(route, json!({"emailAddress": nobody, "password": "password"})),
            Thing::Email => {
                Named { path: format!("{}?emailAddress={nobody}", route.path), body: Value::Null }
            }
            Thing::OnboardingUrl => {
                with(route, json!({"returnUrl": "app:x", "signature": "00".repeat(32)}))
            }
            Thing::LoginToken => with(route, offer_for("nobodys")),
        }
    }

    async fn name_made(&self, route: &Route, thing: Thing, owner: Owner, by: &Partner) -> Named {
        let user = self.user(owner);
        let reference = format!("{owner:?}-{}", self.next());
        match thing {
            Thing::Order => at(route, &self.order(owner, &reference).await.to_string()),
            Thing::CompletedOrder => {
                at(route, &self.completed(owner, &reference).await.to_string())
            }
            Thing::Sale => at(route, &self.sale(owner, &reference).await.to_string()),
            Thing::Wallet => proof(route, self.order(owner, &reference).await, by),
            Thing::OrderReference => {
                self.order(owner, &reference).await;
                at(route, &reference)
            }
            Thing::SaleReference => {
                self.sale(owner, &reference).await;
                at(route, &reference)
            }
            Thing::Plan => at(route, &self.plan(owner).await),
            Thing::Event => at(route, &self.event(owner).await),
            Thing::Webhook => {
                let url = json!({"url": "https://shop.example/spare"});
                let made =
                    user.partner.post("/api/v2/webhooks", url).await.assert_status(200).json();
                at(route, made["id"].as_str().unwrap())
            }
            Thing::BuyQuote => with(route, confirm(&self.quote(owner).await)),
            Thing::SellQuote => with(route, json!({"quote": self.sell_quote(owner).await})),
            Thing::QuoteUnderOffer => {
                with(route, under(&self.quote(owner).await, &self.offer(by).await))
            }
            Thing::Offer => {
                with(route, under(&self.free_quote(by).await, &self.offer(&user.partner).await))
            }
            Thing::Card => {
                let card = self.card(owner, &reference).await;
                with(route, json!({ "accountIdentifier": card }))
            }
            Thing::Payer => with(route, self.paid_by(&self.verified_card(owner).await, by).await),
            Thing::Payee => with(route, self.paid_to(&self.verified_card(owner).await, by).await),
            Thing::Login => {
                with(route, json!({"emailAddress": user.email, "password": user.password}))
            }
            Thing::Email => {
                let path = format!("{}?emailAddress={}", route.path, user.email);
                Named { path, body: Value::Null }
            }
            Thing::OnboardingUrl => with(route, self.onboarding(&user.partner).await),
            Thing::LoginToken => {
                let token = user.get("/api/v1/user/login-token").await.assert_status(200).json();
                with(route, offer_for(token["token"].as_str().unwrap()))
            }
        }
    }
}
