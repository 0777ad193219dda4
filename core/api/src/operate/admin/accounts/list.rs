//! `GET /admin/v1/users/{uuid}/accounts`

use http::{Method, StatusCode};

use super::AccountView;
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::Endpoint;
use crate::endpoint::openapi::doc::Doc;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{AFTER, Page, Part, limit};
use crate::operate::admin::users::{UUID, find};
use crate::platform::error::Result;
use crate::users::accounts::{self, ACCOUNTS_MAX};

/// `GET /admin/v1/users/{uuid}/accounts`
pub struct ListAccounts;

impl Endpoint for ListAccounts {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/users/{uuid}/accounts";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Support, Role::Compliance];
    const READ_AUDIT: Option<&'static str> = Some("account.list");
    const DOC: Doc = Doc {
        summary: "List a user's accounts",
        details: "All of them, the disabled ones too, in the order in which they were opened.",
        path: &[UUID],
        query: &[AFTER, limit(ACCOUNTS_MAX)],
        answer: r#"[{
            "accountIdentifier": "NL91ABNA0417164300",
            "accountId": "0199a000-0000-7000-8000-00000000000a", "type": "bankTransfer",
            "name": "A. Lovelace", "version": "v5b1f0c2a9d3e4f60", "verified": true,
            "disabled": false, "limitRaised": true, "limit": 7500,
            "fastAccessEnabled": null, "proofs": []
        }]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, Part);
    type Response = Page<AccountView>;

    fn read(input: &Input, _: &Operator) -> Result<(String, Part)> {
        Ok((input.param("uuid").to_owned(), Part::read(input, ACCOUNTS_MAX)?))
    }

    async fn call(
        core: &Core,
        _: Operator,
        (uuid, part): (String, Part),
    ) -> Result<Page<AccountView>> {
        let mut conn = core.db.acquire().await?;
        let key = find(&mut conn, &uuid).await?;
        let mut shown = Vec::new();
        for account in accounts::list(&mut conn, core, key).await? {
            shown.push(AccountView::load(&mut conn, key, &account).await?);
        }
        part.of(shown, |account: &AccountView| account.account_id.to_string())
    }
}
