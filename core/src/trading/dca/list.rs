//! `GET /api/v2/user/dca-codes`: the caller's savings plans, newest first.

use http::Method;

use super::{Plan, plans};
use crate::Core;
use crate::auth::caller::Reader;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::platform::error::Result;
use crate::tenancy::tenants::Scope;
use rampart_types::UserId;

/// Most plans of one response.
const PLANS_MAX: i64 = 1_000;

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v2/user/dca-codes";
    const SCOPE: Option<Scope> = Some(Scope::OrdersRead);
    const DOC: Doc = Doc {
        summary: "List savings plans",
        details: "With a user credential, that user's plans. Without one, a client token sees \
                  those of all users, at most the newest 1000; an API key needs the user. Hidden \
                  plans are listed too, those of deleted users are not.",
        answer: r#"[{
            "code": "7K2M9QXT4B8D", "apiClientName": "Shop", "cryptoCurrency": "BTC",
            "walletAddress": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "destinationTag": null,
            "bankName": "Sandbox Bank", "bankIban": "NL77SAND0000000001", "bankBic": "SANDNL2A",
            "name": "For later", "intendedAmount": 5000, "frequency": "monthly", "hidden": false,
            "createdAt": "2026-03-01T14:00:00Z",
            "targetCurrency": {
                "code": "BTC", "ticker": "BTC", "name": "Bitcoin",
                "caip19": "bip122:000000000019d6689c085ae165831e93/slip44:0"
            }
        }]"#,
        ..Doc::NONE
    };
    type Caller = Reader;
    type Request = ();
    type Response = Json<Vec<Plan>>;

    fn read(_: &Input, _: &Reader) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, caller: Reader, (): ()) -> Result<Json<Vec<Plan>>> {
        let Reader { client, user } = caller;
        let rows = plans!(
            "select",
            "from dca_plan p where client_id = $1 and ($2::uuid is null or user_id = $2) \
                 and exists (select from end_user u where u.client_id = p.client_id \
                     and u.user_id = p.user_id and u.deleted_at is null) \
             order by created_at desc, code limit $3",
            client.id().uuid(),
            user.map(UserId::uuid),
            PLANS_MAX,
        )
        .fetch_all(&core.db)
        .await?;
        let plans = rows.into_iter().map(|row| row.plan(&client.catalogue, &client.tenant.name));
        Ok(Json(plans.collect::<Result<_>>()?))
    }
}
