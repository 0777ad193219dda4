//! A visit of a page of checks: the requirement that its link names, and those that are open there.

use crate::Core;
use crate::auth::caller::Client;
use crate::http::fields::Fields;
use crate::http::html::dead_link;
use crate::http::language::Texts;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Result};
use crate::trading::checks::Hold;
use crate::trading::checks::link::{self, Permission};
use crate::trading::checks::requirement::{
    OpenRequirements, Requirement, RequirementState, open_requirements, refused_requirements,
};
use crate::trading::orders::state::OrderStatus;
use crate::trading::quotes::Side;
use crate::users::account::Account;
use crate::users::account_pages::invitation::Invitation;
use crate::users::one_time_token::lock_for_checks;
use rampart_types::{ClientId, OrderId, OrderKey, ReturnUrl, UserId, UserKey};

/// The URL parameters of the page.
#[derive(Debug)]
pub struct Link {
    token: String,
    check: String,
    /// `<region>/<invitation>` of the account's page that the visitor came from; empty without one.
    account_page: String,
    has_mailed_code: bool,
    request_id: String,
    texts: Texts,
}

/// Parameter of the page after a code was mailed.
const MAILED: &str = "mailed";

impl Link {
    pub(super) fn read(input: &Input) -> Self {
        let param = |name| input.param(name).to_owned();
        let query = Fields::of_query(input.head.query.as_deref());
        let account_page = query.value("account").and_then(|value| value.as_str());
        Self {
            token: param("token"),
            check: param("check"),
            account_page: account_page.unwrap_or_default().to_owned(),
            has_mailed_code: query.value(MAILED).is_some(),
            request_id: input.head.request_id.clone(),
            texts: Texts::of(input),
        }
    }

    /// True after a form of the page that has had a code mailed.
    pub(super) const fn has_mailed_code(&self) -> bool {
        self.has_mailed_code
    }

    /// The page of a forged or expired link, or of a requirement that nobody meets on a page.
    pub(super) fn not_found(&self, core: &Core) -> Reply {
        dead_link(self.texts, &core.settings.pages)
    }

    /// The answer of a page; that of a dead link if the sign-in has ended meanwhile.
    pub(super) fn unless_ended(&self, core: &Core, answer: Result<Reply>) -> Result<Reply> {
        match answer {
            Err(error) if error.is(Code::UserTokenInvalid) => Ok(self.not_found(core)),
            answer => answer,
        }
    }

    /// The requirement that the link names, and whose it is; `None` if it is not ours, or is good for
    /// another page only.
    ///
    /// # Errors
    /// Those of the master key; when the database cannot be read.
    pub(super) async fn visit(&self, core: &Core) -> Result<Option<Visit>> {
        let Some(requirement) = Requirement::from_name(&self.check) else { return Ok(None) };
        match link::open(core, &self.token).await? {
            Some(Permission::Order(side, order)) => {
                self.visit_of_order(core, requirement, side, order).await
            }
            Some(Permission::Account(user)) if !requirement.is_of_order() => {
                self.visit_of_user(core, requirement, user).await
            }
            _ => Ok(None),
        }
    }

    async fn visit_of_order(
        &self,
        core: &Core,
        requirement: Requirement,
        side: Side,
        OrderKey { client, order }: OrderKey,
    ) -> Result<Option<Visit>> {
        let Some(client) = Client::for_page(core, client, &self.request_id) else {
            return Ok(None);
        };
        let row = sqlx::query!(
            r#"
            select status as "status!: OrderStatus", user_id, wallet_address as "wallet_address!",
                crypto_currency as "crypto_currency!", return_url,
                (select region from end_user u
                    where u.client_id = traded.client_id and u.user_id = traded.user_id) as region
            from (
                select client_id, order_id, false as is_sale, status, user_id, wallet_address,
                    crypto_currency, return_url
                from buy_order
                union all
                select client_id, order_id, true, status, user_id, wallet_address,
                    crypto_currency, null
                from sell_order
            ) as traded where client_id = $1 and order_id = $2 and is_sale = $3
            "#,
            client.id().uuid(),
            order.number(),
            side == Side::Sell,
        )
        .fetch_optional(&core.db)
        .await?;
        Ok(row.map(|row| Visit {
            texts: self.texts.of_account(row.region.as_deref()),
            client,
            requirement,
            order: Some(VisitedOrder {
                side,
                id: order,
                is_final: row.status.is_final(),
                wallet_address: row.wallet_address,
                asset: row.crypto_currency,
            }),
            user: row.user_id.map(UserId::from),
            token: self.token.clone(),
            account_page: None,
            // Validated at confirm, and again before it becomes a link on our page.
            return_url: row.return_url.and_then(|url| url.parse().ok()),
        }))
    }

    async fn visit_of_user(
        &self,
        core: &Core,
        requirement: Requirement,
        UserKey { client, user }: UserKey,
    ) -> Result<Option<Visit>> {
        let Some(client) = Client::for_page(core, client, &self.request_id) else {
            return Ok(None);
        };
        let row = sqlx::query!(
            "select region from end_user where client_id = $1 and user_id = $2 \
                 and deleted_at is null and disabled_at is null",
            client.id().uuid(),
            user.uuid(),
        )
        .fetch_optional(&core.db)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let (account_page, return_url) = self.account_page(core, &client).unzip();
        // Its path has named the language, which counts before the account's.
        let region = account_page.as_deref().or(row.region.as_deref());
        Ok(Some(Visit {
            texts: self.texts.of_account(region),
            client,
            requirement,
            order: None,
            user: Some(user),
            token: self.token.clone(),
            account_page,
            return_url,
        }))
    }

    /// The account's page that the visitor came from, with the partner's return URL; `None` if its link
    /// does not work any more.
    fn account_page(&self, core: &Core, client: &Client) -> Option<(String, ReturnUrl)> {
        let (region, session) = self.account_page.split_once('/')?;
        let (of, invitation) = Invitation::open(core, session, &self.request_id)?;
        let is_served = client.catalogue.page_regions.iter().any(|known| known == region);
        (is_served && of.id() == client.id())
            .then(|| (self.account_page.clone(), invitation.return_url))
    }
}

/// A visit of the page of one requirement.
pub(super) struct Visit {
    pub(super) texts: Texts,
    pub(super) client: Client,
    pub(super) requirement: Requirement,
    /// `None`: the user has signed in.
    pub(super) order: Option<VisitedOrder>,
    /// `None` for a guest's order.
    pub(super) user: Option<UserId>,
    token: String,
    /// `<region>/<invitation>` of the account's page that the visitor came from.
    account_page: Option<String>,
    pub(super) return_url: Option<ReturnUrl>,
}

/// The order whose token has opened the page.
pub(super) struct VisitedOrder {
    pub(super) side: Side,
    pub(super) id: OrderId,
    is_final: bool,
    pub(super) wallet_address: String,
    pub(super) asset: String,
}

impl VisitedOrder {
    /// The checks that the order still waits for.
    async fn open_holds(
        &self,
        conn: &mut Connection,
        client: ClientId,
        user: Option<UserId>,
    ) -> Result<Vec<Hold>> {
        match (self.is_final, self.side, user) {
            (false, Side::Buy, _) => {
                Hold::of_order(conn, OrderKey { client, order: self.id }).await
            }
            (false, Side::Sell, Some(_)) => {
                let sale = self.id.number();
                let mut open = Hold::of_sales(conn, client, &[sale]).await?;
                Ok(open.remove(&sale).unwrap_or_default())
            }
            _ => Ok(Vec::new()),
        }
    }
}

impl Visit {
    /// The token of the user who has signed in; `None` on the page of an order.
    pub(super) fn sign_in_token(&self) -> Option<&str> {
        self.order.is_none().then_some(&*self.token)
    }

    /// Locks the row of a user who has signed in, for what the transaction writes. A link of an order
    /// locks nothing: no session ends it.
    ///
    /// # Errors
    /// ER702 when the sign-in has ended, ER709 when the user is deleted.
    pub(super) async fn lock_sign_in(&self, conn: &mut Connection) -> Result<()> {
        match (self.user, self.sign_in_token()) {
            (Some(user), Some(token)) => {
                lock_for_checks(conn, self.client.key_of(user), Some(token)).await
            }
            _ => Ok(()),
        }
    }

    /// The open requirements: the order's checks, or else those of the user's verification.
    pub(super) async fn open(
        &self,
        conn: &mut Connection,
        core: &Core,
    ) -> Result<OpenRequirements> {
        let account = self.account(conn, core).await?;
        if let (Some(order), Requirement::Check(_)) = (&self.order, self.requirement) {
            let holds = order.open_holds(conn, self.client.id(), self.user).await?;
            let refused = match &account {
                Some(account) => refused_requirements(conn, account).await?,
                None => Vec::new(),
            };
            let with_state = |one| match refused.contains(&one) {
                true => (one, RequirementState::Rejected),
                false => (one, RequirementState::Missing),
            };
            return Ok(holds.into_iter().map(Requirement::Check).map(with_state).collect());
        }
        match account {
            Some(account) => open_requirements(conn, &self.client, &account).await,
            None => Ok(OpenRequirements::new()),
        }
    }

    /// The account of the user, unless nothing can be open: the order is final, or the user is gone.
    async fn account(&self, conn: &mut Connection, core: &Core) -> Result<Option<Account>> {
        let user = self.user.filter(|_| self.order.as_ref().is_none_or(|order| !order.is_final));
        let Some(user) = user else { return Ok(None) };
        let account = Account::load(conn, core, self.client.key_of(user)).await?;
        Ok(account.filter(|one| one.deleted_at.is_none() && one.disabled_at.is_none()))
    }

    /// The URL of the page of another requirement, by the same token.
    ///
    /// # Errors
    /// Those of the master key.
    pub(super) fn url(&self, core: &Core, requirement: Requirement) -> Result<String> {
        match &self.order {
            Some(order) => {
                let key = OrderKey { client: self.client.id(), order: order.id };
                link::order_url(core, order.side, key, requirement)
            }
            None => {
                let account_page = self.account_page.as_deref().unwrap_or_default();
                Ok(link::account_url(core, &self.token, account_page, requirement))
            }
        }
    }

    /// The path that leads to this page again after a form was taken.
    pub(super) fn path_after(&self, has_mailed_code: bool) -> String {
        let path = format!("/checks/{}/{}", self.token, self.requirement.name());
        let account = self.account_page.as_ref().map(|page| format!("account={page}"));
        let mailed = has_mailed_code.then(|| format!("{MAILED}=1"));
        let query: Vec<_> = account.into_iter().chain(mailed).collect();
        match query.is_empty() {
            true => path,
            false => format!("{path}?{}", query.join("&")),
        }
    }

    /// The path of the account's page that the visitor came from.
    pub(super) fn account_path(&self) -> Option<String> {
        let (region, session) = self.account_page.as_deref()?.split_once('/')?;
        Some(format!("/{region}/dashboard/{session}"))
    }
}
