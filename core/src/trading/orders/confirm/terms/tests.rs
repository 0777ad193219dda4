use chrono::TimeDelta;
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::trading::quotes::Side;
use rampart_types::{Chain, FeeBreakdown, TagKind};

const ADDRESS: &str = "rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh";
const OTHER_ADDRESS: &str = "rvYAfWj5gh67oV6fW32ZzP3Aw4Eubs59B";

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

fn to(address: &str, tag: Option<&str>) -> Destination {
    Destination {
        address: WalletAddress::parse(Chain::Xrp, address).unwrap(),
        tag: tag.map(|tag| DestinationTag::parse(TagKind::Number, tag).unwrap()),
    }
}

fn quote() -> Quote {
    Quote {
        id: Uuid::from_u128(3).into(),
        client: Uuid::from_u128(1).into(),
        user: None,
        side: Side::Buy,
        pair: "XRP-EUR".parse().unwrap(),
        payment_method: "creditCard".to_owned(),
        fiat: Decimal::ONE_HUNDRED,
        crypto: Decimal::new(475, 1),
        price: Decimal::TWO,
        fees: FeeBreakdown { spread: Decimal::new(5, 0), ..FeeBreakdown::default() },
        partner_fee_percentage: Decimal::ONE,
        requested_fee_percentage: None,
        wallet_address: None,
        destination_tag: None,
        country: None,
        is_estimated: false,
        policy_decisions: json!([]),
        catalogue_revision: 1,
        fee_rules: None,
        issued_at: at(0),
        expires_at: at(300),
    }
}

fn offer() -> OfferTerms {
    OfferTerms {
        offer_id: Uuid::from_u128(4),
        return_url: None,
        callback_url: None,
        partner_reference: None,
        signature_decision: None,
        base_currency: "XRP".to_owned(),
        quote_currency: "EUR".to_owned(),
        payment_method: Some("creditCard".to_owned()),
        base_amount: None,
        quote_amount: Some(Decimal::new(10_000, 2)),
        wallet_address: None,
        wallet_address_tag: None,
        fee_percentage: None,
        fixed_amount: false,
        fixed_currency: false,
        fixed_payment_method: false,
        expires_at: at(3600),
        confirmed_at: None,
        user_id: None,
        is_checkout: false,
    }
}

fn fixing_everything() -> OfferTerms {
    OfferTerms {
        wallet_address: Some(ADDRESS.to_owned()),
        wallet_address_tag: Some("12".to_owned()),
        fee_percentage: Some(Decimal::ONE),
        fixed_amount: true,
        fixed_currency: true,
        fixed_payment_method: true,
        ..offer()
    }
}

fn codes(offer: &OfferTerms, quote: &Quote, destination: &Destination) -> Vec<Code> {
    let mut refusal = Refusal::new();
    offer.check(quote, destination, at(0), &mut refusal);
    refusal.codes().collect()
}

#[test]
fn a_quote_in_the_offers_terms_may_be_confirmed() {
    assert_eq!(codes(&fixing_everything(), &quote(), &to(ADDRESS, Some("12"))), []);
    let in_crypto =
        OfferTerms { base_amount: Some(Decimal::new(4750, 2)), quote_amount: None, ..offer() };
    let in_crypto = OfferTerms { fixed_amount: true, ..in_crypto };
    assert_eq!(codes(&in_crypto, &quote(), &to(ADDRESS, None)), []);
}

#[test]
fn every_fixed_term_that_differs_is_found() {
    let other = Quote {
        pair: "XRP-USD".parse().unwrap(),
        payment_method: "walletpay".to_owned(),
        fiat: Decimal::new(10_001, 2),
        requested_fee_percentage: Some(Decimal::TWO),
        ..quote()
    };
    assert_eq!(
        codes(&fixing_everything(), &other, &to(OTHER_ADDRESS, Some("13"))),
        [
            Code::OfferAmountFixed,
            Code::OfferCurrencyFixed,
            Code::OfferPaymentMethodFixed,
            Code::OfferFeeFixed,
            Code::WalletAddressInvalid,
            Code::DestinationTagInvalid
        ]
    );
    assert_eq!(codes(&offer(), &other, &to(OTHER_ADDRESS, None)), []);
}

#[test]
fn the_fee_that_was_asked_for_counts_not_the_one_that_a_policy_made_of_it() {
    let fixed = OfferTerms { fee_percentage: Some(Decimal::TWO), ..offer() };
    let asked = Quote { requested_fee_percentage: Some(Decimal::new(200, 2)), ..quote() };
    assert_eq!(codes(&fixed, &asked, &to(ADDRESS, None)), []);
    assert_eq!(codes(&fixed, &quote(), &to(ADDRESS, None)), [Code::OfferFeeFixed]);
}

#[test]
fn a_checkout_without_a_fee_takes_no_quote_of_a_page_that_has_one() {
    let checkout = OfferTerms { is_checkout: true, ..offer() };
    let other = Quote { requested_fee_percentage: Some(Decimal::ZERO), ..quote() };
    assert_eq!(codes(&checkout, &quote(), &to(ADDRESS, None)), []);
    assert_eq!(codes(&checkout, &other, &to(ADDRESS, None)), [Code::OfferFeeFixed]);
    assert_eq!(codes(&offer(), &other, &to(ADDRESS, None)), [], "the partner quotes for itself");
}

#[test]
fn a_wallet_that_the_partner_signed_takes_no_other_tag() {
    let without_tag = OfferTerms { wallet_address: Some(ADDRESS.to_owned()), ..offer() };
    assert_eq!(codes(&without_tag, &quote(), &to(ADDRESS, None)), []);
    assert_eq!(
        codes(&without_tag, &quote(), &to(ADDRESS, Some("1"))),
        [Code::DestinationTagInvalid]
    );
    let tag_alone = OfferTerms { wallet_address_tag: Some("12".to_owned()), ..offer() };
    assert_eq!(codes(&tag_alone, &quote(), &to(OTHER_ADDRESS, Some("12"))), []);
    assert_eq!(
        codes(&tag_alone, &quote(), &to(OTHER_ADDRESS, None)),
        [Code::DestinationTagInvalid]
    );
}

#[test]
fn an_offer_that_is_over_says_only_that() {
    let differing = to(OTHER_ADDRESS, None);
    let confirmed = OfferTerms { confirmed_at: Some(at(-1)), ..fixing_everything() };
    assert_eq!(codes(&confirmed, &quote(), &differing), [Code::OfferAlreadyConfirmed]);
    let ended = OfferTerms { expires_at: at(0), ..fixing_everything() };
    assert_eq!(codes(&ended, &quote(), &differing), [Code::OfferExpired]);
    let both = OfferTerms { confirmed_at: Some(at(-1)), ..ended };
    assert_eq!(codes(&both, &quote(), &differing), [Code::OfferAlreadyConfirmed]);
    let last_moment = OfferTerms { expires_at: at(0) + TimeDelta::microseconds(1), ..offer() };
    assert_eq!(codes(&last_moment, &quote(), &differing), []);
}

#[test]
fn an_address_in_another_case_is_the_same_terms() {
    let ether = |text: &str| Destination {
        address: WalletAddress::parse(Chain::Ethereum, text).unwrap(),
        tag: None,
    };
    let of = |text| digest(&ether(text), None, None, None, &NamedAccount::None);
    let lower = of("0xde709f2102306220921060314715629080e2fb77");
    assert_eq!(lower, of("0xDE709F2102306220921060314715629080E2FB77"));
}

#[test]
fn an_account_is_one_of_the_terms() {
    let of = |account| digest(&to(ADDRESS, None), None, None, None, &account);
    assert_ne!(of(NamedAccount::None), of(NamedAccount::Unknown));
}

proptest! {
    #[test]
    fn other_terms_have_another_digest(
        one in any::<(bool, Option<u32>, Option<u128>, Option<u128>)>(),
        two in any::<(bool, Option<u32>, Option<u128>, Option<u128>)>(),
        references in any::<(Option<u8>, Option<u8>)>(),
    ) {
        let of = |(other, tag, offer, user): (bool, Option<u32>, Option<u128>, Option<u128>),
                  reference: Option<u8>| {
            let address = if other { OTHER_ADDRESS } else { ADDRESS };
            let tag = tag.map(|tag| tag.to_string());
            let reference = reference.map(|text| text.to_string().parse().unwrap());
            digest(
                &to(address, tag.as_deref()),
                offer.map(|id| Uuid::from_u128(id).into()),
                reference.as_ref(),
                user.map(|id| Uuid::from_u128(id).into()),
                &NamedAccount::None,
            )
        };
        let same = one == two && references.0 == references.1;
        prop_assert_eq!(of(one, references.0) == of(two, references.1), same);
    }
}
