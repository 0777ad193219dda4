//! The tables of contents, a line per method and path: the partners' API, its pages, the operators'
//! API, the connectors'. Router, metrics labels, the error catalogue, the OpenAPI documents and the tests that loop
//! over every endpoint read them. [`operate`] is the room of the operators' endpoints, [`workers`] what an edge
//! does beside requests.

mod connectors_api;
pub mod operate;
mod operation_ids;
mod operators_api;
mod partners_api;
pub mod workers;

use std::sync::LazyLock;

pub use self::connectors_api::{CONNECTOR_ENDPOINTS, CONNECTORS};
pub use self::operators_api::OPERATORS;
pub use self::partners_api::PARTNERS;
// The rooms of the core, under the paths that they have there.
use rampart_core::{
    Core, auth, endpoint, http, money, notify, partners, platform, policies, readiness, tenancy,
    trading, users,
};

use crate::endpoint::router::{ServedApi, ServedApis};
use crate::endpoint::{Route, route};
use crate::operate::{admin, portal};

/// Every endpoint of the partners' API. A type path is a file path and a version.
pub const ENDPOINTS: &[Route] = &[
    // Credentials
    route::<partners::authenticate::V1>(),
    route::<partners::refresh::V1>(),
    // Verification
    route::<users::verification::amld5::QuestionsV1>(),
    route::<users::verification::amld5::AnswersV1>(),
    route::<users::verification::status::V2>(),
    route::<users::verification::card::V1>(),
    route::<users::verification::wallet_provider::V1>(),
    route::<users::verification::iban_photo::V1>(),
    // Accounts and limits
    route::<users::accounts::register_card::V2>(),
    route::<trading::limits::read::V2>(),
    // The market
    route::<trading::market::currency_pairs::V1>(),
    route::<trading::market::system_info::V1>(),
    route::<trading::market::prices::V1>(),
    route::<trading::market::prices::V2>(),
    route::<trading::market::client_info::V2>(),
    route::<trading::payment_methods::V2>(),
    // Quotes
    route::<trading::quotes::create::BuyV1>(),
    route::<trading::quotes::create::SellV1>(),
    route::<trading::quotes::matrix::V2>(),
    // Offers and checkouts
    route::<trading::offers::create::V2>(),
    route::<trading::checkout::create::V2>(),
    // Orders
    route::<trading::orders::confirm::V1>(),
    route::<trading::orders::confirm::V2>(),
    route::<trading::orders::read::V1>(),
    route::<trading::orders::read::V2>(),
    route::<trading::orders::list::V2>(),
    route::<trading::orders::timeline::V2>(),
    route::<trading::orders::receipt::V2>(),
    route::<trading::orders::wallet_proof::V2>(),
    route::<trading::orders::wallet_check::V2>(),
    // Users
    route::<users::register::RegisterV2>(),
    route::<users::register::UpdateV2>(),
    route::<users::session::LoginV1>(),
    route::<users::session::LogoutV1>(),
    route::<users::session::LoginTokenV1>(),
    route::<users::by_email::ExistsV1>(),
    route::<users::by_email::ResetPasswordV1>(),
    route::<users::profile::V1>(),
    route::<users::register_identifier::V1>(),
    route::<users::link_identifier::V2>(),
    // Savings plans
    route::<trading::dca::list::V2>(),
    route::<trading::dca::update::V2>(),
    // Selling
    route::<trading::sell::confirm::V1>(),
    route::<trading::sell::read::ListV1>(),
    route::<trading::sell::read::ReadV1>(),
    route::<trading::sell::timeline::V2>(),
    route::<trading::sell::onboarding::CreateV2>(),
    route::<trading::sell::onboarding::VerifyV2>(),
    // Webhooks and the sandbox
    route::<notify::events::list::V2>(),
    route::<notify::events::redeliver::V2>(),
    route::<notify::webhooks::register::V2>(),
    route::<notify::webhooks::list::V2>(),
    route::<notify::webhooks::remove::V2>(),
    route::<operate::sandbox::order_event::V2>(),
    route::<operate::sandbox::sell_order_event::V2>(),
    route::<operate::sandbox::user_event::V2>(),
    route::<operate::sandbox::scenarios::V2>(),
    route::<operate::sandbox::signature::V2>(),
    // The service itself
    route::<operate::system::errors::V2>(),
    route::<operate::system::signing_keys::Any>(),
    route::<operate::system::openapi::Any>(),
];

/// Pages for people, served beside the partners' API.
pub const PAGES: &[Route] = &[
    route::<trading::pay::Show>(),
    route::<trading::pay::Act>(),
    route::<trading::pay::events::Follow>(),
    route::<trading::pay::receipt::Pdf>(),
    route::<trading::pay::receipt::Json>(),
    route::<trading::checks::page::Show>(),
    route::<trading::checks::page::Submit>(),
    route::<trading::checkout::show::Show>(),
    route::<trading::checkout::show::Act>(),
    route::<trading::sell::onboarding_page::Show>(),
    route::<trading::sell::onboarding_page::Act>(),
    route::<users::account_pages::join::Show>(),
    route::<users::account_pages::join::Submit>(),
    route::<users::account_pages::dashboard::Show>(),
    route::<users::account_pages::dashboard::Submit>(),
    route::<users::account_pages::verify_bank_account::Show>(),
    route::<users::account_pages::verify_bank_account::Submit>(),
    route::<users::reset_page::Show>(),
    route::<users::reset_page::Submit>(),
    route::<users::forgot_password::Show>(),
    route::<users::forgot_password::Submit>(),
    route::<trading::dca::page::Show>(),
    route::<operate::system::design::Show>(),
    route::<portal::sign_in::Show>(),
    route::<portal::sign_in::Submit>(),
    route::<portal::Page<portal::sign_in::SignOut>>(),
    route::<portal::password::Show>(),
    route::<portal::password::Submit>(),
    route::<portal::password::ShowForgot>(),
    route::<portal::password::SubmitForgot>(),
    route::<portal::Page<portal::overview::Show>>(),
    route::<portal::Page<portal::keys::Show>>(),
    route::<portal::Page<portal::keys::Issue>>(),
    route::<portal::Page<portal::keys::Revoke>>(),
    route::<portal::Page<portal::webhooks::Show>>(),
    route::<portal::Page<portal::webhooks::Register>>(),
    route::<portal::Page<portal::webhooks::ShowOne>>(),
    route::<portal::Page<portal::webhooks::Test>>(),
    route::<portal::Page<portal::webhooks::RotateSecret>>(),
    route::<portal::Page<portal::webhooks::ResendSince>>(),
    route::<portal::Page<portal::webhooks::Remove>>(),
    route::<portal::Page<portal::deliveries::Show>>(),
    route::<portal::Page<portal::deliveries::Resend>>(),
    route::<portal::Page<portal::events::Show>>(),
    route::<portal::Page<portal::events::ShowOne>>(),
    route::<portal::Page<portal::events::Redeliver>>(),
    route::<portal::Page<portal::orders::Show>>(),
    route::<portal::Page<portal::orders::ShowOne>>(),
    route::<portal::Page<portal::users::Show>>(),
    route::<portal::Page<portal::users::Find>>(),
    route::<portal::Page<portal::users::ShowOne>>(),
    route::<portal::Page<portal::users::EndIdentityCheck>>(),
    route::<portal::Page<portal::sandbox::Show>>(),
    route::<portal::Page<portal::sandbox::MakeOrder>>(),
    route::<portal::Page<portal::sandbox::SimulateEvent>>(),
    route::<portal::Page<portal::sandbox::EndIdentityCheck>>(),
    route::<portal::Page<portal::policies::Show>>(),
    route::<portal::Page<portal::policies::upload::Submit>>(),
    route::<portal::Page<portal::policies::upload::ShowRefused>>(),
    route::<portal::Page<portal::policies::version::Show>>(),
    route::<portal::Page<portal::policies::dry_run::Run>>(),
    route::<portal::Page<portal::branding::Show>>(),
    route::<portal::Page<portal::branding::Save>>(),
    route::<portal::Page<portal::team::Show>>(),
    route::<portal::Page<portal::team::Invite>>(),
    route::<portal::Page<portal::team::Remove>>(),
    route::<portal::Page<portal::account::Show>>(),
    route::<portal::Page<portal::account::BeginSecondFactor>>(),
    route::<portal::Page<portal::account::ConfirmSecondFactor>>(),
    route::<portal::Page<portal::account::RemoveSecondFactor>>(),
    route::<operate::system::logo::Show>(),
    route::<operate::system::help::Support>(),
    route::<operate::system::help::Faq>(),
    route::<operate::system::docs::Show>(),
    route::<operate::system::docs::ShowPage>(),
    route::<operate::system::docs::Llms>(),
];

/// Every endpoint of the operators' API.
pub const OPERATOR_ENDPOINTS: &[Route] = &[
    // Partners
    route::<admin::partners::create::CreatePartner>(),
    route::<admin::partners::read::ListPartners>(),
    route::<admin::partners::read::ReadPartner>(),
    route::<admin::partners::update::UpdatePartner>(),
    route::<admin::partners::api_keys::IssueApiKey>(),
    route::<admin::partners::api_keys::RevokeApiKey>(),
    route::<admin::partners::secrets::RotateSecret>(),
    route::<admin::partners::staff::ListStaff>(),
    route::<admin::partners::staff::InviteStaff>(),
    route::<admin::partners::staff::RemoveStaff>(),
    route::<admin::partners::webhooks::ListWebhooks>(),
    route::<admin::partners::webhooks::RemoveWebhook>(),
    route::<admin::partners::webhooks::TestWebhook>(),
    // Policies
    route::<admin::policies::history::ReadPolicy>(),
    route::<admin::policies::push::PushPolicy>(),
    route::<admin::policies::rollback::RemovePolicy>(),
    route::<admin::policies::push::ConfigurePolicy>(),
    route::<admin::policies::rollback::RollBackPolicy>(),
    route::<admin::policies::dry_run::DryRunPolicy>(),
    route::<admin::keys::verification::ListVerificationKeys>(),
    route::<admin::keys::verification::PutVerificationKey>(),
    route::<admin::keys::verification::DeleteVerificationKey>(),
    route::<admin::policies::versions::StageVersion>(),
    route::<admin::policies::versions::ActivateVersion>(),
    route::<admin::policies::versions::ShadowVersion>(),
    route::<admin::policies::trial::ReadTrial>(),
    route::<admin::policies::trial::EndTrial>(),
    route::<admin::keys::signing::ListOperatorKeys>(),
    route::<admin::keys::signing::RegisterOperatorKey>(),
    route::<admin::keys::signing::RemoveOperatorKey>(),
    route::<admin::keys::rotation::StartRotation>(),
    route::<admin::keys::rotation::ReadRotation>(),
    route::<admin::keys::receipts::ListReceiptKeys>(),
    route::<admin::keys::receipts::RotateReceiptKey>(),
    // The market
    route::<admin::market::pairs::ListPairs>(),
    route::<admin::market::pairs::UpdatePair>(),
    route::<admin::market::prices::ListPrices>(),
    route::<admin::market::prices::SetPrice>(),
    route::<admin::market::payment_methods::ListPaymentMethods>(),
    route::<admin::market::payment_methods::UpdatePaymentMethod>(),
    route::<admin::market::currencies::ListCurrencies>(),
    route::<admin::market::maintenance::ListMaintenanceWindows>(),
    route::<admin::market::maintenance::CreateMaintenanceWindow>(),
    route::<admin::market::maintenance::EndMaintenanceWindow>(),
    // Orders
    route::<admin::orders::search::SearchOrders>(),
    route::<admin::orders::read::ReadOrder>(),
    route::<admin::orders::events::ApplyOrderEvent>(),
    route::<admin::orders::replay::ReplayDecisions>(),
    route::<admin::orders::offers::ExpireOffer>(),
    route::<admin::orders::wallet_proof::ProveWallet>(),
    route::<admin::payments::list::ListPayments>(),
    route::<admin::payments::create::RecordPayment>(),
    route::<admin::payments::read::ReadPayment>(),
    route::<admin::payments::suggestions::SuggestOrders>(),
    route::<admin::payments::matching::MatchPayment>(),
    route::<admin::payments::refund::RefundPayment>(),
    route::<admin::ledger::balances::ReadBalances>(),
    route::<admin::ledger::entries::ListEntries>(),
    route::<admin::ledger::export::ExportLedger>(),
    route::<admin::ledger::check::CheckLedger>(),
    route::<admin::reconciliations::Reconcile>(),
    route::<admin::reconciliations::list::ListReconciliations>(),
    route::<admin::reconciliations::ReadReconciliation>(),
    // Users
    route::<admin::users::search::SearchUsers>(),
    route::<admin::users::read::ReadUser>(),
    route::<admin::users::update::UpdateUser>(),
    route::<admin::accounts::list::ListAccounts>(),
    route::<admin::accounts::open::OpenAccount>(),
    route::<admin::accounts::update::UpdateAccount>(),
    route::<admin::users::images::ReadProof>(),
    route::<admin::users::images::ReadDocument>(),
    route::<admin::users::retained_record::OpenRecord>(),
    route::<admin::users::retained_record::OpenDocument>(),
    route::<admin::mail::ListMail>(),
    route::<admin::screenings::list::ListScreenings>(),
    route::<admin::screenings::read::ReadScreening>(),
    route::<admin::screenings::decide::DecideScreening>(),
    route::<admin::reviews::list::ListReviews>(),
    route::<admin::reviews::claim::ClaimReview>(),
    route::<admin::reviews::claim::ReleaseReview>(),
    // Savings plans
    route::<admin::dca::open::OpenPlan>(),
    route::<admin::dca::list::ListPlans>(),
    route::<admin::dca::read::ReadPlan>(),
    route::<admin::dca::deposit::ReportDeposit>(),
    // Deliveries
    route::<admin::deliveries::ListDeliveries>(),
    route::<admin::deliveries::read::ReadDelivery>(),
    route::<admin::deliveries::Redeliver>(),
    // Connectors
    route::<admin::connectors::read::ListConnectors>(),
    route::<admin::connectors::create::CreateConnector>(),
    route::<admin::connectors::read::ReadConnector>(),
    route::<admin::connectors::rotate::RotateConnectorToken>(),
    route::<admin::connectors::card_element::PutCardElement>(),
    route::<admin::routes::ReadRoutes>(),
    route::<admin::routes::PutRoutes>(),
    // Operators
    route::<admin::operators::list::ListOperators>(),
    route::<admin::operators::create::CreateOperator>(),
    route::<admin::operators::update::UpdateOperator>(),
    route::<admin::operators::tokens::IssueOperatorToken>(),
    route::<admin::operators::tokens::RevokeOperatorToken>(),
    route::<admin::operators::sessions::ListSessions>(),
    route::<admin::approvals::list::ListApprovals>(),
    route::<admin::approvals::decide::GrantApproval>(),
    route::<admin::approvals::decide::RefuseApproval>(),
    // The service itself
    route::<admin::overview::ReadOverview>(),
    route::<admin::overview::dependents::CountDependents>(),
    route::<admin::configuration::ReadConfiguration>(),
    route::<admin::configuration::ApplyConfiguration>(),
    route::<admin::audit::ListAudit>(),
    route::<admin::audit::verification::VerifyAudit>(),
    route::<admin::openapi::ReadOpenApi>(),
];

/// The three APIs, as [`Core::start`] takes them.
pub fn served_apis() -> ServedApis {
    ServedApis { partners: &PARTNERS_API, operators: &OPERATORS_API, connectors: &CONNECTORS_API }
}

/// The partners' API, served.
pub static PARTNERS_API: LazyLock<ServedApi> = LazyLock::new(|| ServedApi::new(&PARTNERS, PAGES));
/// The operators' API, served.
pub static OPERATORS_API: LazyLock<ServedApi> = LazyLock::new(|| ServedApi::new(&OPERATORS, &[]));

/// The connectors' API, served.
pub static CONNECTORS_API: LazyLock<ServedApi> = LazyLock::new(|| ServedApi::new(&CONNECTORS, &[]));

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::http::Surface;
    use crate::platform::error::Code;

    #[test]
    fn no_method_and_path_stands_twice() {
        let mut seen = BTreeSet::new();
        let private = OPERATOR_ENDPOINTS.iter().chain(CONNECTOR_ENDPOINTS);
        for route in ENDPOINTS.iter().chain(PAGES).chain(private) {
            assert!(seen.insert((route.method.as_str(), route.path)), "{route:?}");
        }
    }

    #[test]
    fn a_table_has_the_rows_of_one_api() {
        for route in ENDPOINTS.iter().chain(PAGES) {
            assert_eq!(route.surface, Surface::Partners, "{route:?}");
            assert!(route.statuses.is_empty(), "{route:?} declares statuses, not codes");
        }
        for route in OPERATOR_ENDPOINTS {
            assert_eq!(route.surface, Surface::Operators, "{route:?}");
            assert!(route.errors.is_empty(), "{route:?} declares codes, not statuses");
            assert!(route.path.starts_with("/admin/v1/"), "{route:?}");
            assert!(!route.roles.is_empty(), "{route:?} declares no role");
        }
        for route in CONNECTOR_ENDPOINTS {
            assert_eq!(route.surface, Surface::Connectors, "{route:?}");
            assert!(route.errors.is_empty(), "{route:?} declares codes, not statuses");
            assert!(route.path.starts_with("/connectors/v1/"), "{route:?}");
        }
    }

    #[test]
    fn declared_codes_are_in_the_catalogue_once() {
        for route in ENDPOINTS {
            let codes: BTreeSet<_> = route.errors.iter().collect();
            assert_eq!(codes.len(), route.errors.len(), "{route:?} declares a code twice");
            assert!(codes.iter().all(|code| Code::ALL.contains(code)));
        }
    }
}
