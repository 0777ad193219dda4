//! `GET /{region}/account/dca`: the secured page of `privateUrls` with a user's savings plans.
//! `token` and `uuid` of a login token open it once, and the visit that it begins from then on.

use http::{Method, StatusCode};
use maud::{Markup, html};

use super::{Plan, plans};
use crate::Core;
use crate::auth::caller::Anyone;
use crate::endpoint::Endpoint;
use crate::http::html::components::address;
use crate::http::html::{PAGE_SCRIPT, Page, PageScripts};
use crate::http::language::Texts;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::Result;
use crate::users::account_pages::verify_bank_account::Link;

/// Most plans of the page, newest first.
const PLANS_MAX: i64 = 100;

/// Shows the plans that are not hidden.
pub struct Show;

impl Endpoint for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/{region}/account/dca";
    type Caller = Anyone;
    type Request = Link;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<Link> {
        Ok(Link::read(input))
    }

    async fn call(core: &Core, _: Anyone, link: Link) -> Result<Reply> {
        let Some(mut opened) = link.open(core).await? else {
            return Ok(link.unopened(core, "plans-title"));
        };
        let client = &opened.client;
        let rows = plans!(
            "select",
            "from dca_plan where client_id = $1 and user_id = $2 and not hidden \
             order by created_at desc, code limit $3",
            client.id().uuid(),
            opened.key.user.uuid(),
            PLANS_MAX,
        )
        .fetch_all(&mut *opened.tx)
        .await?;
        let plans = rows.into_iter().map(|row| row.plan(&client.catalogue, &client.tenant.name));
        let plans: Vec<Plan> = plans.collect::<Result<_>>()?;
        let texts = link.texts;
        let body = html! {
            @if plans.is_empty() { p { (texts.get("plans-none")) } }
            @for plan in &plans { (section(texts, plan)) }
            @if let Some(back) = link.account_link(core) { (back) }
        };
        let title = texts.get("plans-title");
        let tenant = &client.tenant;
        let page =
            Page::new(texts, &core.settings.pages, &title).branded(&tenant.name, &tenant.brand);
        let scripts = Some(PageScripts::Own(PAGE_SCRIPT));
        let is_test = tenant.is_test();
        let mut reply = Page { scripts, is_test, ..page }.render(StatusCode::OK, &body);
        opened.keep(core, &mut reply).await?;
        Ok(reply)
    }
}

fn section(texts: Texts, plan: &Plan) -> Markup {
    html! {
        h2 { (plan.name.as_deref().unwrap_or(&plan.code)) }
        p { (texts.get("plans-how")) }
        dl {
            dt { (texts.get("plans-code")) } dd { (plan.code) }
            dt { (texts.get("plans-buys")) } dd { (plan.crypto_currency) }
            dt { (texts.get("plans-sent-to")) } dd { (address(&plan.wallet_address)) }
            @if let Some(tag) = &plan.destination_tag {
                dt { (texts.get("checkout-tag")) } dd { code { (tag) } }
            }
            dt { (texts.get("plans-bank")) } dd { (plan.bank_name) }
            dt { "IBAN" } dd { (plan.bank_iban) }
            dt { "BIC" } dd { (plan.bank_bic) }
        }
    }
}
