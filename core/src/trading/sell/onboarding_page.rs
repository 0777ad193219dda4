//! `GET` and `POST /sell/onboarding`: the page of an onboarding URL. The user signs in or
//! registers, is linked to the partner's identifier, adds a bank account, and returns to the
//! partner.
//!
//! The signature covers the whole query, byte for byte: an altered URL shows and does nothing. It
//! also identifies the partner, which no parameter names (see [`super::onboarding_signers`]).

use std::net::IpAddr;

use http::{Method, StatusCode};
use maud::{Markup, html};

use super::onboarding::PAGE;
use super::onboarding_signers::ClaimedQuery;
use crate::Core;
use crate::auth::caller::{Anyone, Client};
use crate::auth::user_credentials::lock_login;
use crate::endpoint::{Body, Endpoint};
use crate::http::fields::Fields;
use crate::http::form::Form;
use crate::http::html::components::{Tone, toast};
use crate::http::html::form_errors::{FormErrors, TypedForm};
use crate::http::html::{Page, PageScripts, back_link};
use crate::http::language::{Language, Texts};
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::crypto::Secret;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::trading::quotes::Side;
use crate::trading::routing::is_payable;
use crate::users::account::page_texts_in;
use crate::users::account_pages::bank_account::{act, kind_of, redeem, section};
use crate::users::account_pages::passkey::SCRIPT;
use crate::users::account_pages::sign_in::{error_page, forms, sign_in_or_register};
use crate::users::account_pages::sign_in_outcome::{SignIn, SignInStep, SignedIn};
use crate::users::account_pages::sign_in_page::SignInPage;
use crate::users::accounts::AccountType;
use crate::users::one_time_token::{Purpose, issue_for_pages};
use crate::users::{identifiers, share_token};
use rampart_types::{ClientId, ReturnUrl, UserId, UserIdentifier};

/// Shows the forms.
pub struct Show;

impl Endpoint for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PAGE;
    type Caller = Anyone;
    type Request = SignedUrl;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<SignedUrl> {
        Ok(SignedUrl::read(input))
    }

    async fn call(core: &Core, _: Anyone, signed_url: SignedUrl) -> Result<Reply> {
        Ok(match VerifiedUrl::open(core, &signed_url).await? {
            Some(url) => url.sign_in_page(core, StatusCode::OK, &html! {}, None, None),
            None => signed_url.not_genuine(core),
        })
    }
}

/// Handles a submitted form.
pub struct Act;

impl Endpoint for Act {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PAGE;
    const BODY: Body = Body::Form;
    type Caller = Anyone;
    type Request = (SignedUrl, Form);
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<(SignedUrl, Form)> {
        Ok((SignedUrl::read(input), Form::read(&input.body)))
    }

    async fn call(core: &Core, _: Anyone, (signed_url, form): (SignedUrl, Form)) -> Result<Reply> {
        let Some(mut url) = VerifiedUrl::open(core, &signed_url).await? else {
            return Ok(signed_url.not_genuine(core));
        };
        if let Some(kind) = kind_of(&form) {
            return url.get_account_ready(core, &form, kind).await;
        }
        let region = url.texts.spoken_region(&url.client.catalogue.page_regions);
        let (texts, identifier) = (url.texts, url.identifier.as_ref());
        match sign_in_or_register(core, &url.client, texts, &form, identifier, region).await {
            Ok(SignIn::Incomplete(SignInStep { status, note, form: step })) => {
                Ok(url.sign_in_page(core, status, &note, step.as_ref(), Some(&form)))
            }
            Ok(SignIn::Done(signed_in)) => url.accounts_page(core, signed_in, &form).await,
            Err(error) => {
                let page = SignInPage::new(&url.client, url.texts, &core.settings.pages);
                error_page(page, error, forms, &form, |status, note, form| {
                    url.sign_in_page(core, status, note, form, None)
                })
            }
        }
    }
}

/// The URL, before its verification.
#[derive(Debug)]
pub struct SignedUrl {
    query: String,
    request_id: String,
    peer: IpAddr,
    texts: Texts,
}

impl SignedUrl {
    fn read(input: &Input) -> Self {
        let query = input.head.query.clone().unwrap_or_default();
        let (request_id, texts) = (input.head.request_id.clone(), SignedUrl::texts(&query, input));
        Self { query, request_id, peer: input.head.peer, texts }
    }

    /// The texts in the language of the URL's `locale`, else the browser's.
    fn texts(query: &str, input: &Input) -> Texts {
        let query = Fields::of_query(Some(query));
        let locale = query.value("locale").and_then(|locale| locale.as_str());
        let named = locale.and_then(Language::from_tag);
        named.map_or_else(|| Texts::of(input), |language| language.texts().of_page())
    }

    /// The page for an invalid signature. It has no link back, which may be the forged part.
    fn not_genuine(&self, core: &Core) -> Reply {
        let title = self.texts.get("sell-forged-title");
        let body = html! { p { (self.texts.get("dead-link-shop")) } };
        Page::new(self.texts, &core.settings.pages, &title).render(StatusCode::NOT_FOUND, &body)
    }
}

/// A verified URL.
#[derive(Debug)]
struct VerifiedUrl {
    client: Client,
    identifier: Option<UserIdentifier>,
    /// Of an identity check elsewhere.
    share_token: Option<Secret>,
    /// Payout methods that the URL names and sales of now can be paid out by.
    methods: Vec<AccountType>,
    return_url: ReturnUrl,
    texts: Texts,
}

impl VerifiedUrl {
    /// Verifies a URL; `None` unless a partner that is not suspended has signed all of it.
    ///
    /// # Errors
    /// 503 when too many were sent whose signer is not known.
    async fn open(core: &Core, signed_url: &SignedUrl) -> Result<Option<Self>> {
        let Some(query) = ClaimedQuery::read(&signed_url.query) else { return Ok(None) };
        let signer = core.onboarding_signers.find(core, &query, signed_url.peer).await?;
        Ok(signer.and_then(|signer| Self::of_signer(core, signed_url, query, signer)))
    }

    fn of_signer(
        core: &Core,
        signed_url: &SignedUrl,
        claimed: ClaimedQuery<'_>,
        signer: ClientId,
    ) -> Option<Self> {
        let client = Client::for_page(core, signer, &signed_url.request_id)?;
        let client = client.visited_from(signed_url.peer);
        let query = Fields::of_query(Some(claimed.signed));
        let text = |name| query.value(name).and_then(|value| value.as_str());
        let identifier = match text("identifier") {
            Some(sealed) => Some(identifiers::open(core, client.id(), sealed)?),
            None => None,
        };
        let named = text("payoutMethod").map(|methods| methods.split(',').collect::<Vec<_>>());
        let is_named = |method: &AccountType| {
            named.as_ref().is_none_or(|named| named.contains(&method.as_str()))
        };
        let is_open = |method: &AccountType| {
            let known = client.catalogue.payment_method(method.as_str());
            known.is_some_and(|known| is_payable(&client, Side::Sell, known))
        };
        let methods = AccountType::ALL.into_iter();
        let methods = methods.filter(|method| is_named(method) && is_open(method)).collect();
        Some(Self {
            identifier,
            share_token: text("kycShareToken").map(Secret::new),
            methods,
            return_url: claimed.return_url,
            client,
            texts: signed_url.texts,
        })
    }

    /// Changes to the language of the account, unless the URL names one.
    async fn speak_to(&mut self, conn: &mut Connection, user: UserId) -> Result<()> {
        let key = self.client.key_of(user);
        self.texts = page_texts_in(conn, self.texts, key).await?;
        Ok(())
    }

    fn page(&self, core: &Core, status: StatusCode, body: &Markup) -> Reply {
        let (tenant, texts) = (&self.client.tenant, self.texts);
        let body = html! { (body) (back_link(texts, &self.return_url, &tenant.name)) };
        let title = texts.get("sell-title");
        let page =
            Page::new(texts, &core.settings.pages, &title).branded(&tenant.name, &tenant.brand);
        Page {
            is_test: tenant.is_test(),
            return_url: Some(&self.return_url),
            scripts: Some(PageScripts::Own(SCRIPT)),
            ..page
        }
        .render(status, &body)
    }

    /// The page with the forms to sign in or register, after the form that was `sent`.
    fn sign_in_page(
        &self,
        core: &Core,
        status: StatusCode,
        note: &Markup,
        form: Option<&Markup>,
        sent: Option<&Form>,
    ) -> Reply {
        let page = SignInPage::new(&self.client, self.texts, &core.settings.pages).after(sent);
        let body = html! {
            p { (self.texts.with("sell-intro", &[("shop", &self.client.tenant.name)])) }
            (note)
            @if let Some(form) = form { (form) } @else { (forms(page, None)) }
        };
        self.page(core, status, &body)
    }

    /// The page with the accounts of a user who has signed in, and what was typed before it.
    async fn accounts_page(
        &mut self,
        core: &Core,
        SignedIn { user, began_at, .. }: SignedIn,
        form: &Form,
    ) -> Result<Reply> {
        let key = self.client.key_of(user);
        let mut tx = core.db.begin().await?;
        self.speak_to(&mut tx, user).await?;
        if !lock_login(&mut tx, key, Some(began_at)).await? {
            let note = toast(Tone::Bad, &self.texts.get("checkout-signed-out"));
            return Ok(self.sign_in_page(core, StatusCode::BAD_REQUEST, &note, None, Some(form)));
        }
        if let Some(token) = &self.share_token {
            share_token::store_for_first_check(&mut tx, core, key, token).await?;
        }
        let typed = TypedForm { form, errors: &FormErrors::default() };
        let token = issue_for_pages(&mut tx, core, Purpose::Form, key).await?;
        let section = section(&mut tx, core, key, self.texts, &self.methods, typed, &token).await?;
        tx.commit().await?;
        Ok(self.page(core, StatusCode::OK, &section))
    }

    /// Adds or verifies the account that the form names, for the user of its token.
    async fn get_account_ready(
        &mut self,
        core: &Core,
        form: &Form,
        kind: AccountType,
    ) -> Result<Reply> {
        let mut tx = core.db.begin().await?;
        let user = redeem(&mut tx, form).await?;
        let user = user.filter(|key| key.client == self.client.id()).map(|key| key.user);
        let offered = self.methods.contains(&kind);
        let Some(user) = user.filter(|_| offered) else {
            let texts = self.texts;
            let note = html! {
                (toast(Tone::Bad, &texts.get("bank-form-ended")))
                p { (texts.get("checkout-signed-out")) }
            };
            return Ok(self.sign_in_page(core, StatusCode::BAD_REQUEST, &note, None, Some(form)));
        };
        self.speak_to(&mut tx, user).await?;
        let (client, texts, methods) = (&self.client, self.texts, &self.methods);
        let (status, body) = Box::pin(act(tx, core, client, user, texts, methods, form)).await?;
        Ok(self.page(core, status, &body))
    }
}
