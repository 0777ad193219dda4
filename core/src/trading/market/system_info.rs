//! `GET /api/v1/system/info`: regions, users' pages by region, nationalities.

use std::collections::BTreeMap;

use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Cache, Endpoint, Json};
use crate::http::request::Input;
use crate::platform::error::Result;
use crate::tenancy::tenants::Scope;
use crate::trading::catalogue::Nationality;

/// Version 1, the only one.
pub struct V1;

impl Endpoint for V1 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v1/system/info";
    const SCOPE: Option<Scope> = Some(Scope::QuotesRead);
    const CACHE: Cache = Cache::Revalidate;
    const DOC: Doc = Doc {
        summary: "List regions, pages and nationalities",
        details: "Pages are by website locale. Private ones are opened with `token` and `uuid` of a login \
                  token as query parameters.",
        answer: r#"{
            "supportedRegions": ["nl-nl"],
            "urls": {
                "support": {"nl-nl": "https://pay.example.com/nl-nl/support?client=acme"},
                "faq": {"nl-nl": "https://pay.example.com/nl-nl/faq?client=acme"},
                "forgotPassword": {"nl-nl": "https://pay.example.com/nl-nl/forgot-password?client=acme"}
            },
            "privateUrls": {
                "verifyBankAccount": {
                    "nl-nl": "https://pay.example.com/nl-nl/account/verify-bank-account"
                },
                "dca": {"nl-nl": "https://pay.example.com/nl-nl/account/dca"}
            },
            "nationalities": [{"name": "Dutch", "code": "NL", "idSelfieRequired": false}]
        }"#,
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = ();
    type Response = Json<SystemInfo>;

    fn read(_: &Input, _: &Client) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, client: Client, (): ()) -> Result<Json<SystemInfo>> {
        let regions = &client.catalogue.regions;
        let pages = |page: &str| LocalPages::new(&core.settings.public_url, regions, page);
        let branded = |page: &str| pages(&format!("{page}?client={}", client.tenant.slug));
        Ok(Json(SystemInfo {
            supported_regions: regions.clone(),
            urls: Urls {
                support: branded("support"),
                faq: branded("faq"),
                forgot_password: branded("forgot-password"),
            },
            private_urls: PrivateUrls {
                verify_bank_account: pages("account/verify-bank-account"),
                dca: pages("account/dca"),
            },
            nationalities: client.catalogue.nationalities.clone(),
        }))
    }
}

/// The service's surroundings.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SystemInfo {
    /// Locales of the website.
    supported_regions: Vec<String>,
    /// Pages for everybody.
    urls: Urls,
    /// Pages that a login token opens.
    private_urls: PrivateUrls,
    /// Nationalities that users may have.
    nationalities: Vec<Nationality>,
}

/// Pages for everybody, each by locale.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "WebsiteUrls")]
struct Urls {
    /// Page with help, by locale.
    support: LocalPages,
    /// Page with questions and answers, by locale.
    faq: LocalPages,
    /// Page on which a user asks for a new password, by locale.
    forgot_password: LocalPages,
}

/// Opened with the `token` and `uuid` of a login token as query parameters.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SecuredPageUrls")]
struct PrivateUrls {
    /// Page on which a user adds a bank account, by locale.
    verify_bank_account: LocalPages,
    /// Page of the savings plans, by locale.
    dca: LocalPages,
}

/// A page's URL by website locale (`nl-be`).
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "LocalizedPages")]
struct LocalPages(BTreeMap<String, String>);

impl LocalPages {
    fn new(public_url: &str, regions: &[String], page: &str) -> Self {
        let url = |region: &String| (region.clone(), format!("{public_url}/{region}/{page}"));
        Self(regions.iter().map(url).collect())
    }
}
