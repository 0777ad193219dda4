//! The error catalogue: one code, one meaning, one status (section 13 of the contract names the four
//! codes that have several). `GET /api/v2/system/errors` serves this table.

/// Defines [`Code`] and its tables from one line per code: `NAME "wire" status retryable? "message" "solution";`
macro_rules! catalogue {
    ($($name:ident $wire:literal $status:literal $($retryable:ident)? : $message:literal, $solution:literal;)*) => {
        /// A code of the error catalogue.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $message] $name,)*
        }

        impl Code {
            /// All codes, in the order of the catalogue.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The code in the error envelope.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $wire,)* }
            }

            /// The code of this name, such as `ER008`.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($wire => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The HTTP status, unless the contract defines another one for the case.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// The message: one sentence about the error.
            pub const fn message(self) -> &'static str {
                match self { $(Self::$name => $message,)* }
            }

            /// The solution: advice for the partner.
            pub const fn solution(self) -> &'static str {
                match self { $(Self::$name => $solution,)* }
            }

            /// True if the same request may succeed later.
            pub const fn retryable(self) -> bool {
                match self { $(Self::$name => false $(|| stringify!($retryable).len() > 0)?,)* }
            }
        }
    };
}

catalogue! {
    EmailInvalid "ER001" 400: "The e-mail address is invalid.", "Send an address such as name@example.com.";
    EmailTaken "ER002" 400: "The e-mail address is registered already.", "Let the user log in, or use another address.";
    EmailMissing "ER003" 400: "The e-mail address is missing.", "Send the e-mail address.";
    PasswordMissing "ER004" 400: "The password is missing.", "Send the password.";
    LoginInvalid "ER005" 400: "The login details are invalid.", "Check the e-mail address and the password.";
    QuoteExpired "ER006" 400: "The quote has expired.", "Request a new quote and confirm it before its expiry date.";
    QuoteInvalid "ER007" 400: "The quote is invalid.", "Confirm a quote unchanged, once, with the client, user and wallet it was made for.";
    CurrencyInMaintenance "ER008" 400 retryable: "The currency is in maintenance.", "Try again later, or choose another currency pair.";
    NotBuyQuote "ER009" 400: "The quote is not a buy quote.", "Use a quote of the buy quote endpoint.";
    CurrencyPairUnknown "ER010" 400: "The currency pair is unknown.", "Use a pair listed by the currency-pairs endpoint.";
    FiatAmountInvalid "ER011" 400: "The fiat amount is invalid.", "Send a positive amount within the limits, with no more decimals than the currency has.";
    CryptoAmountInvalid "ER012" 400: "The crypto amount is invalid.", "Send a positive amount with no more decimals than the currency has, and at most 8.";
    PaymentMethodUnknown "ER013" 400: "The payment method is unknown.", "Use a method listed by the payment-methods endpoint; a sale is paid out by bankTransfer, creditCard or walletpay.";
    WalletAddressInvalid "ER014" 400: "The wallet address is invalid.", "Send a main-network address of the currency that is bought.";
    DestinationTagInvalid "ER015" 400: "The destination tag is invalid.", "Send a tag in the form that the currency's network knows.";
    SellingInMaintenance "ER016" 400 retryable: "Selling this currency is in maintenance.", "Try again later, or choose another currency pair.";
    NotSellQuote "ER017" 400: "The quote is not a sell quote.", "Use a quote of the sell quote endpoint.";
    OrderIdMissing "ER033" 400: "The order id is missing.", "Put the order id, or your own order identifier, into the path.";
    OrderIdMalformed "ER034" 400: "The order id is malformed.", "Send a number, or an identifier of at most 255 printable characters.";
    OrderNotFound "ER035" 404: "The order was not found.", "Check the id, and that the order belongs to this client and user.";
    RefreshTokenInvalid "ER036" 400: "The refresh token is invalid or has expired.", "Authenticate, or let the user log in, again.";
    RefreshTokenMissing "ER037" 400: "The refresh token is missing.", "Send the refresh token of the last token pair.";
    ClientCredentialsInvalid "ER038" 400: "The credentials are wrong.", "Check the user name and the password.";
    AmountMissing "ER042" 400: "Neither a fiat nor a crypto amount was sent.", "Send exactly one of fiatAmount and cryptoAmount.";
    AmountAmbiguous "ER043" 400: "Both a fiat and a crypto amount were sent.", "Send exactly one of fiatAmount and cryptoAmount.";
    DestinationTagUnsupported "ER044" 400: "The currency pair does not support a destination tag.", "Leave the tag out.";
    QuoteMissing "ER045" 400: "The quote is missing.", "Send the quote of the quote endpoint.";
    CallbackUrlInvalid "ER046" 400: "The callback URL is invalid.", "Send an absolute https URL.";
    ReturnUrlInvalid "ER047" 400: "The return URL is invalid.", "Send an absolute URL.";
    RequestMalformed "ER048" 400: "The request is malformed.", "Send what the documentation describes: one JSON document in UTF-8, within the size limit.";
    FeeOutOfBounds "ER050" 400: "The fee is out of bounds.", "Send a percentage from 0 to 5, within the client's cap and with at most 4 decimals, or leave it out for the default.";
    UserIdentifierMissing "ER053" 400: "The user identifier is missing.", "Send the identifier.";
    PaymentMethodUnavailable "ER055" 400 retryable: "The payment method is not available now.", "Choose another method, or try again later.";
    IbanInvalid "ER056" 400: "The IBAN is invalid.", "Send a valid IBAN.";
    AccountHolderMissing "ER057" 400: "The account holder is missing.", "Send the name of the account holder.";
    PhoneNumberInvalid "ER059" 400: "The phone number is invalid.", "Send + and digits only, with the country code.";
    CountryCodeInvalid "ER061" 400: "The country code is invalid.", "Send two letters, such as NL; a nationality is one that the system-info endpoint lists.";
    CountryMissing "ER062" 400: "The country is missing.", "Send two letters, such as NL.";
    CountryUnknown "ER063" 400: "The country is unknown or not served.", "Send a country of ISO 3166-1 that the partner serves.";
    BusinessCountryInvalid "ER064" 400: "The business country is invalid.", "Send two letters, such as NL.";
    ImageMissing "ER077" 400: "The image is missing.", "Send the image as base64.";
    ImageInvalid "ER078" 400: "The image is invalid.", "Send a JPEG, PNG or PDF as base64, within the size limit.";
    WebsiteLanguageInvalid "ER081" 400: "The website language is invalid.", "Use a language of the supported regions.";
    WebsiteCountryInvalid "ER083" 400: "The website country is invalid.", "Use a country of the supported regions.";
    WebsiteRegionInvalid "ER084" 400: "The website language and country do not go together.", "Use one of the supported regions.";
    UserUnderage "ER085" 400: "The user is younger than 18, or the date of birth is no date.", "Send the date as in 1990-12-31; only adults can register.";
    IbanAccountDisabled "ER086" 400: "The IBAN account is disabled.", "Use another account.";
    IbanAccountUnknown "ER087" 400: "The IBAN account is unknown.", "Check the IBAN, or use an account that the user has already.";
    IbanMissing "ER088" 400: "The IBAN is missing.", "Send the IBAN.";
    EmailCodeInvalid "ER090" 400: "The e-mail verification code is wrong.", "Send the code of the last mail.";
    LocaleInvalid "ER099" 400: "The locale is invalid.", "Use a language of nl, en, de, fr and es, with any region.";
    AnswersMalformed "ER100" 400: "The answers are missing or malformed.", "Send a list of objects with key and answer.";
    AnswerInvalid "ER101" 400: "An answer is not one of the question's options.", "Use the options that the questions endpoint lists.";
    UserIdentifierLengthInvalid "ER102" 400: "The user identifier has a wrong length or wrong characters.", "Send 36 to 255 letters and digits; a UUID with dashes is not alphanumeric.";
    CurrencyMissing "ER109" 400: "The currency is missing.", "Send an ISO 4217 code.";
    IbanEmpty "ER113" 400: "The IBAN is empty.", "Send the IBAN.";
    CurrencyUnsupported "ER114" 400: "The currency is not supported.", "Use a supported fiat currency.";
    ChamberOfCommerceInvalid "ER121" 400: "The Chamber of Commerce number is invalid.", "Send the number in the form of the business country.";
    PasswordTooShort "ER122" 400: "The password is shorter than 8 characters.", "Send 8 to 64 characters.";
    PasswordTooLong "ER123" 400: "The password is longer than 64 characters.", "Send 8 to 64 characters.";
    UserDisabled "ER124" 400: "The user is disabled.", "Ask the user to contact support.";
    BusinessNameInvalid "ER125" 400: "The business name is invalid.", "Send 1 to 100 characters without emoji, < and >.";
    FirstNameInvalid "ER126" 400: "The first name is invalid.", "Send 1 to 100 characters without emoji, < and >.";
    LastNameInvalid "ER127" 400: "The last name is invalid.", "Send 1 to 100 characters without emoji, < and >.";
    OfferAlreadyConfirmed "ER131" 400: "The offer is confirmed already.", "Create a new offer.";
    OfferNotFound "ER132" 400: "The offer was not found.", "Check the offer id.";
    OfferExpired "ER133" 400: "The offer has expired.", "Create a new offer.";
    OfferAmountFixed "ER134" 400: "The amount is fixed by the offer.", "Confirm a quote over the offer's amount.";
    OfferCurrencyFixed "ER135" 400: "The currency is fixed by the offer.", "Confirm a quote over the offer's currencies.";
    OfferPaymentMethodFixed "ER136" 400: "The payment method is fixed by the offer.", "Confirm a quote with the offer's payment method.";
    OfferFeeFixed "ER137" 400: "The fee is fixed by the offer.", "Confirm a quote with the offer's fee.";
    AccountTypeUnsupported "ER138" 400: "The account type does not support the payment method of the quote.", "Use another account or another method.";
    AccountNotVerified "ER139" 400: "The account is not verified.", "Let the user verify the account first.";
    FrequencyInvalid "ER142" 400: "The frequency is invalid.", "Use weekly, biweekly, monthly, quarterly or half_yearly.";
    IntendedAmountInvalid "ER143" 400: "The intended amount is not above zero.", "Send a whole number of cents above zero.";
    NameTooLong "ER144" 400: "The name is longer than 255 characters, or has control characters.", "Send at most 255 characters, without control characters.";
    StreetInvalid "ER181" 400: "The residential street is invalid.", "Send the street without the number.";
    HouseNumberInvalid "ER182" 400: "The house number is invalid.", "Send the house number.";
    CityInvalid "ER183" 400: "The city is invalid.", "Send the city.";
    PostalCodeInvalid "ER184" 400: "The postal code is invalid.", "Send the postal code.";
    AccountHolderEmpty "ER185" 400: "The name of the account's owner is empty or invalid.", "Send the owner's name: 1 to 100 characters without emoji, < and >.";
    OwnershipProofMissing "ER186" 400: "The proof of ownership is missing.", "Send the proof as base64.";
    InstantVerificationUnsupported "ER188" 400: "The account cannot be verified instantly.", "Verify the account by another way.";
    FixedBaseCurrencyBlank "ER300" 400: "The base currency is blank although the currency is fixed.", "Send the base currency, or both CAIP-19 identifiers.";
    BaseCurrencyNotString "ER301" 400: "The base currency is not a string.", "Send a currency code.";
    QuoteCurrencyBlank "ER302" 400: "The quote currency is blank.", "Send a fiat currency code.";
    QuoteCurrencyNotString "ER303" 400: "The quote currency is not a string.", "Send a fiat currency code.";
    BaseAmountInvalid "ER304" 400: "The base currency amount is not a usable number.", "Send a JSON number above zero within the currency's decimals, or null.";
    QuoteAmountInvalid "ER305" 400: "The quote currency amount is not a usable number.", "Send a JSON number above zero within the currency's decimals, or null.";
    FixedPaymentMethodBlank "ER306" 400: "The payment method is blank although it is fixed.", "Send a payment method code.";
    PaymentMethodNotString "ER307" 400: "The payment method is not a string.", "Send a payment method code.";
    ReturnUrlBlank "ER308" 400: "The return URL is blank.", "Send an absolute URL; offers and checkouts may leave it out.";
    ReturnUrlNotString "ER309" 400: "The return URL is not a string.", "Send an absolute URL.";
    OfferCallbackInvalid "ER310" 400: "The callback URL is not a usable string.", "Send an absolute https URL or null.";
    PartnerOrderIdInvalid "ER311" 400: "The partner order identifier is not a usable string.", "Send 1 to 255 characters, or null.";
    OfferWalletInvalid "ER312" 400: "The wallet address is not a usable string.", "Send an address of the base currency, or null.";
    WalletAddressTagInvalid "ER313" 400: "The wallet address tag is not a usable string.", "Send a tag of the base currency, or null.";
    ExpireTimeNotInteger "ER314" 400: "The expire time is not an integer.", "Send a whole number of seconds or null.";
    FeeInvalid "ER315" 400: "The fee is not a usable number.", "Send a percentage from 0 to 5 as a number, or null.";
    FixedAmountNotBool "ER316" 400: "The fixed amount flag is not a boolean.", "Send true, false, 1, 0 or null.";
    FixedCurrencyNotBool "ER317" 400: "The fixed currency flag is not a boolean.", "Send true, false, 1, 0 or null.";
    FixedPaymentMethodNotBool "ER318" 400: "The fixed payment method flag is not a boolean.", "Send true, false, 1, 0 or null.";
    ShowWalletNotBool "ER319" 400: "The show wallet address flag is not a boolean.", "Send true, false, 1, 0 or null.";
    OfferAmountAmbiguous "ER320" 400: "Both amounts are set.", "Set exactly one of the two amounts, or none.";
    CallbackUrlBlank "ER321" 400: "The callback URL is blank.", "Send an absolute https URL, or leave it out.";
    ExpireTimeBlank "ER322" 400: "The expire time is blank.", "Send a whole number of seconds, or leave it out.";
    FeeBlank "ER323" 400: "The fee is blank.", "Send a percentage, or leave it out.";
    SignaturePolicyFailed "ER324" 400: "Something went wrong.", "Contact support with the request id.";
    WalletAddressRequired "ER325" 400: "The wallet address is required.", "Send the wallet address.";
    CurrencyPairInvalid "ER326" 400: "The currency combination is invalid.", "Use a pair listed by the currency-pairs endpoint.";
    PaymentMethodInvalid "ER327" 400: "The payment method is invalid.", "Use a method listed by the payment-methods endpoint.";
    FeePolicyFailed "ER328" 400: "Something went wrong.", "Contact support with the request id.";
    ExpireTimeOutOfBounds "ER329" 400: "The expire time is out of bounds.", "Send 3600 to 86400 seconds.";
    FixedAmountAmbiguous "ER330" 400: "The amount is fixed, but not exactly one amount is set.", "Set exactly one of the two amounts.";
    SigningSecretMissing "ER331" 400: "No signing secret is set for this client.", "Ask the operator for a signing secret.";
    PaymentMethodNull "ER332" 400: "The payment method is null.", "Send a payment method code.";
    LoginTokenNotFound "ER333" 400: "The login token was not found.", "Request a new login token.";
    LoginTokenExpired "ER334" 400: "The login token has expired.", "Request a new login token.";
    LoginTokenWithoutUser "ER335" 400: "No user is attached to the login token.", "Request a new login token.";
    SignatureInvalid "ER336" 400: "The signature is invalid.", "Sign the covered fields as documented, with the current secret.";
    BaseCurrencyBlank "ER337" 400: "The base currency is blank.", "Send a crypto currency code.";
    SignatureNotString "ER338" 400: "The signature is not a string.", "Send the signature as a string.";
    SignatureRequired "ER339" 400: "A signature is required.", "Sign the covered fields that are set.";
    ApiKeyNotFound "ER340" 400: "The API key was not found.", "Ask the operator for an API key.";
    PasswordResetFailed "ER354" 400 retryable: "The password reset could not be requested.", "Try again later.";
    CheckoutWalletInvalid "ER359" 400: "The wallet address is of an unknown kind.", "Send an address of the currency that is bought.";
    ShareTokenInvalid "ER366" 400: "The share token is not a usable string.", "Send a string of at most 4096 bytes, or null.";
    ShareTokenBlank "ER367" 400: "The share token is blank, too long or no string.", "Send the token, or leave it out.";
    AccountIdentifierInvalid "ER380" 400: "The account identifier is invalid.", "Send an identifier of the user's accounts.";
    TokenEmpty "ER393" 400: "The token is missing or empty.", "Send the token.";
    AccountNotFound "ER396" 400: "The account was not found.", "Use an account of this user.";
    AccountDisabled "ER397" 400: "The account is disabled.", "Use another account.";
    AccountAlreadyVerified "ER398" 400: "The account is verified already.", "Nothing is left to do.";
    CardHolderMissing "ER399" 400: "The card holder's name is missing or invalid.", "Send the name on the card: 1 to 100 characters without emoji, < and >.";
    CardVerificationFailed "ER400" 400 retryable: "The card verification could not be started.", "Try again later.";
    PaymentAccountFailed "ER401" 400: "The payment account could not be created.", "Start a new card session.";
    TargetCurrencyUnsupported "ER402" 400: "The target currency's CAIP-19 identifier is not supported.", "Use an identifier of the currency-pairs endpoint.";
    SourceCurrencyUnsupported "ER403" 400: "The source currency's CAIP-19 identifier is not supported.", "Use an identifier of the currency-pairs endpoint.";
    VerificationLevelInvalid "ER404" 400: "The verification level is invalid.", "Use bronze, silver or gold.";
    PayoutMethodInvalid "ER417" 400: "The payout method is invalid.", "Use bankTransfer, creditCard or walletpay, at least one.";
    UserCredentialMissing "ER700" 400: "No user credential was sent.", "Send User-Authorization or User-Identifier.";
    UserTokenExpired "ER701" 400: "The user token has expired.", "Refresh the token, or let the user log in again.";
    UserTokenInvalid "ER702" 400: "The user token is invalid.", "Let the user log in again.";
    UserIdentifierMismatch "ER703" 400: "The user identifier does not belong to the user of the token.", "Send one of them, or both of the same user.";
    UserIdentifierEmpty "ER704" 400: "The user identifier is empty.", "Send the identifier in User-Identifier.";
    UserIdentifierNotLinked "ER705" 400: "The user identifier is not linked to a user.", "Register or link the identifier first.";
    UserIdentifierTaken "ER706" 400: "The user identifier is used already.", "Use a unique identifier.";
    UserIdentifierMalformed "ER707" 400: "The user identifier is malformed.", "Send 36 to 255 letters and digits; a UUID with dashes is not alphanumeric.";
    DocumentPendingReview "ER708" 400 retryable: "A document for this side is pending review or verified.", "Wait for the review; a verified side needs no other document.";
    UserNotFound "ER709" 400: "The user was not found or is deleted.", "Register the user again.";
    ClientTokenInvalid "ER800" 400: "The authorization token is invalid.", "Authenticate again.";
    ClientTokenExpired "ER801" 400: "The authorization token has expired.", "Refresh the token, or authenticate again.";
    ClientCredentialMissing "ER802" 400: "No authorization was sent.", "Send Authorization: Bearer with a token, or X-Api-Key.";
    ClientCredentialAmbiguous "ER803" 400: "More than one authorization was sent.", "Send exactly one of Authorization and X-Api-Key, once.";
    ApiKeyInvalid "ER805" 400: "The API key is invalid.", "Check the key, its expiry and its address list.";
    ApiKeyEmpty "ER806" 400: "The API key is empty.", "Send the key in X-Api-Key.";
    RateLimited "920" 429 retryable: "The rate limit is exceeded.", "Wait as long as Retry-After says. Also documented as ER920.";
    RouteNotFound "ER998" 404: "There is nothing under this address.", "Check the path, the ids in it and the method.";
    GeneralError "ER999" 500 retryable: "The request could not be carried out.", "Status 500 or 503 is our fault: try again later, and contact support with the request id if it persists. Any other status has its reason in brackets.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Code;

    #[test]
    fn codes_are_unique() {
        let names: BTreeSet<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        for code in Code::ALL {
            assert_eq!(Code::from_name(code.as_str()), Some(*code));
        }
        assert_eq!(Code::from_name("ER8"), None);
    }

    #[test]
    fn the_general_error_calls_only_failures_our_fault() {
        let code = Code::GeneralError;
        // It comes with 404, 409 and 422 too, for what the request itself is wrong in.
        assert!(!code.message().contains("our"), "{}", code.message());
        for status in ["500", "503", "Any other status"] {
            assert!(code.solution().contains(status), "{}", code.solution());
        }
    }

    #[test]
    fn every_text_is_a_sentence() {
        for code in Code::ALL {
            for text in [code.message(), code.solution()] {
                assert!(text.ends_with('.') && text.len() > 10, "{}: {text}", code.as_str());
            }
        }
    }
}
