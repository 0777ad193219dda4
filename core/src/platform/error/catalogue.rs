//! Every code a partner can meet: one code, one meaning, one status (section 13 of the contract
//! names the four codes that have several). The texts are our own; `GET /api/v2/system/errors`
//! serves this table.

/// Makes [`Code`] and its tables from one line a code: `NAME "wire" status again? "message" "solution";`
macro_rules! catalogue {
    ($($name:ident $wire:literal $status:literal $($again:ident)? : $message:literal, $solution:literal;)*) => {
        /// A code of the error catalogue.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $message] $name,)*
        }

        impl Code {
            /// All codes, in the order of the catalogue.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The code as it stands in the envelope.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $wire,)* }
            }

            /// The HTTP status it comes with, unless the contract gives the case another one.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// What happened, in one sentence.
            pub const fn message(self) -> &'static str {
                match self { $(Self::$name => $message,)* }
            }

            /// What the partner can do about it.
            pub const fn solution(self) -> &'static str {
                match self { $(Self::$name => $solution,)* }
            }

            /// Whether the same request may succeed later without a change.
            pub const fn retryable(self) -> bool {
                match self { $(Self::$name => false $(|| stringify!($again).len() > 0)?,)* }
            }
        }
    };
}

catalogue! {
    ER001 "ER001" 400: "The e-mail address is invalid.", "Send an address such as name@example.com.";
    ER002 "ER002" 400: "The e-mail address is registered already.", "Let the user log in, or use another address.";
    ER003 "ER003" 400: "The e-mail address is missing.", "Send the e-mail address.";
    ER004 "ER004" 400: "The password is missing.", "Send the password.";
    ER005 "ER005" 400: "The login details are invalid.", "Check the e-mail address and the password.";
    ER006 "ER006" 400: "The quote has expired.", "Request a new quote and confirm it before its expiry date.";
    ER007 "ER007" 400: "The quote is invalid.", "Confirm a quote unchanged, once, with the client, user and wallet it was made for.";
    ER008 "ER008" 400 again: "The currency is in maintenance.", "Try again later, or choose another currency pair.";
    ER009 "ER009" 400: "The quote is not a buy quote.", "Use a quote of the buy quote endpoint.";
    ER010 "ER010" 400: "The currency pair is unknown.", "Use a pair listed by the currency-pairs endpoint.";
    ER011 "ER011" 400: "The fiat amount is invalid.", "Send a positive amount within the limits, with no more decimals than the currency has.";
    ER012 "ER012" 400: "The crypto amount is invalid.", "Send a positive amount with at most 8 decimals.";
    ER013 "ER013" 400: "The payment method is unknown.", "Use a method listed by the payment-methods endpoint.";
    ER014 "ER014" 400: "The wallet address is invalid.", "Send a main-network address of the currency that is bought.";
    ER015 "ER015" 400: "The destination tag is invalid.", "Send a tag in the form that the currency's network knows.";
    ER016 "ER016" 400 again: "Selling this currency is in maintenance.", "Try again later, or choose another currency pair.";
    ER017 "ER017" 400: "The quote is not a sell quote.", "Use a quote of the sell quote endpoint.";
    ER033 "ER033" 400: "The order id is missing.", "Put the order id, or your own order identifier, into the path.";
    ER034 "ER034" 400: "The order id is malformed.", "Send a number, or an identifier of at most 255 printable characters.";
    ER035 "ER035" 404: "The order was not found.", "Check the id, and that the order belongs to this client and user.";
    ER036 "ER036" 400: "The refresh token is invalid or has expired.", "Authenticate again.";
    ER037 "ER037" 400: "The refresh token is missing.", "Send the refresh token of the last token pair.";
    ER038 "ER038" 400: "The credentials are wrong.", "Check the user name and the password.";
    ER042 "ER042" 400: "Neither a fiat nor a crypto amount was sent.", "Send exactly one of fiatAmount and cryptoAmount.";
    ER043 "ER043" 400: "Both a fiat and a crypto amount were sent.", "Send exactly one of fiatAmount and cryptoAmount.";
    ER044 "ER044" 400: "The currency pair does not support a destination tag.", "Leave the tag out.";
    ER045 "ER045" 400: "The quote is missing.", "Send the quote of the quote endpoint.";
    ER046 "ER046" 400: "The callback URL is invalid.", "Send an absolute https URL.";
    ER047 "ER047" 400: "The return URL is invalid.", "Send an absolute URL.";
    ER048 "ER048" 400: "The request cannot be read as JSON.", "Send one valid JSON document in UTF-8, within the size limit.";
    ER050 "ER050" 400: "The fee is out of bounds.", "Send a percentage from 0 to 5, or leave it out for the default.";
    ER053 "ER053" 400: "The user identifier is missing.", "Send the identifier.";
    ER055 "ER055" 400 again: "The payment method is not available now.", "Choose another method, or try again later.";
    ER056 "ER056" 400: "The IBAN is invalid.", "Send a valid IBAN.";
    ER057 "ER057" 400: "The account holder is missing.", "Send the name of the account holder.";
    ER059 "ER059" 400: "The phone number is invalid.", "Send + and digits only, with the country code.";
    ER061 "ER061" 400: "The country code is not ISO 3166-1 alpha-2.", "Send two letters, such as NL.";
    ER062 "ER062" 400: "The country code is empty.", "Send two letters, such as NL.";
    ER063 "ER063" 400: "The country is missing or unknown.", "Send the country as two letters, such as NL.";
    ER064 "ER064" 400: "The business country is invalid.", "Send two letters, such as NL.";
    ER077 "ER077" 400: "The image is missing.", "Send the image as base64.";
    ER078 "ER078" 400: "The image is invalid.", "Send a JPEG, PNG or PDF as base64, within the size limit.";
    ER081 "ER081" 400: "The website language is invalid.", "Use a language of the supported regions.";
    ER083 "ER083" 400: "The website country is invalid.", "Use a country of the supported regions.";
    ER084 "ER084" 400: "The website language and country do not go together.", "Use one of the supported regions.";
    ER085 "ER085" 400: "The user is younger than 18.", "Only adults can register.";
    ER086 "ER086" 400: "The IBAN account is disabled.", "Use another account.";
    ER087 "ER087" 400: "The IBAN account is unknown.", "Use an account of this user.";
    ER088 "ER088" 400: "The IBAN is missing.", "Send the IBAN.";
    ER090 "ER090" 400: "The e-mail verification code is wrong.", "Send the code of the last mail.";
    ER099 "ER099" 400: "The locale is invalid.", "Use a language of nl, en, de, fr and es, with any region.";
    ER100 "ER100" 400: "The answers are missing or malformed.", "Send a list of objects with key and answer.";
    ER101 "ER101" 400: "An answer is not one of the question's options.", "Use the options that the questions endpoint lists.";
    ER102 "ER102" 400: "The user identifier has a wrong length.", "Send 36 to 255 letters and digits.";
    ER109 "ER109" 400: "The currency is missing.", "Send an ISO 4217 code.";
    ER113 "ER113" 400: "The IBAN is empty.", "Send the IBAN.";
    ER114 "ER114" 400: "The currency is not supported.", "Use a supported fiat currency.";
    ER121 "ER121" 400: "The Chamber of Commerce number is invalid.", "Send the number in the form of the business country.";
    ER122 "ER122" 400: "The password is shorter than 8 characters.", "Send 8 to 64 characters.";
    ER123 "ER123" 400: "The password is longer than 64 characters.", "Send 8 to 64 characters.";
    ER124 "ER124" 400: "The user is disabled.", "Ask the user to contact support.";
    ER125 "ER125" 400: "The business name is invalid.", "Send 1 to 100 characters without emoji, < and >.";
    ER126 "ER126" 400: "The first name is invalid.", "Send 1 to 100 characters without emoji, < and >.";
    ER127 "ER127" 400: "The last name is invalid.", "Send 1 to 100 characters without emoji, < and >.";
    ER131 "ER131" 400: "The offer is confirmed already.", "Create a new offer.";
    ER132 "ER132" 400: "The offer was not found.", "Check the offer id.";
    ER133 "ER133" 400: "The offer has expired.", "Create a new offer.";
    ER134 "ER134" 400: "The amount is fixed by the offer.", "Confirm a quote over the offer's amount.";
    ER135 "ER135" 400: "The currency is fixed by the offer.", "Confirm a quote over the offer's currencies.";
    ER136 "ER136" 400: "The payment method is fixed by the offer.", "Confirm a quote with the offer's payment method.";
    ER137 "ER137" 400: "The fee is fixed by the offer.", "Confirm a quote with the offer's fee.";
    ER138 "ER138" 400: "The account type does not support the payment method of the quote.", "Use another account or another method.";
    ER139 "ER139" 400: "The account is not verified.", "Let the user verify the account first.";
    ER142 "ER142" 400: "The frequency is invalid.", "Use weekly, biweekly, monthly, quarterly or half_yearly.";
    ER143 "ER143" 400: "The intended amount is not above zero.", "Send a whole number of cents above zero.";
    ER144 "ER144" 400: "The name is longer than 255 characters.", "Send at most 255 characters.";
    ER181 "ER181" 400: "The residential street is invalid.", "Send the street without the number.";
    ER182 "ER182" 400: "The house number is invalid.", "Send the house number.";
    ER183 "ER183" 400: "The city is invalid.", "Send the city.";
    ER184 "ER184" 400: "The postal code is invalid.", "Send the postal code.";
    ER185 "ER185" 400: "The name of the account's owner is empty.", "Send the owner's name.";
    ER186 "ER186" 400: "The proof of ownership is missing.", "Send the proof as base64.";
    ER188 "ER188" 400: "The account cannot be verified instantly.", "Verify the account by another way.";
    ER300 "ER300" 400: "The base currency is blank although the currency is fixed.", "Send the base currency, or do not fix it.";
    ER301 "ER301" 400: "The base currency is not a string.", "Send a currency code.";
    ER302 "ER302" 400: "The quote currency is blank.", "Send a fiat currency code.";
    ER303 "ER303" 400: "The quote currency is not a string.", "Send a fiat currency code.";
    ER304 "ER304" 400: "The base currency amount is not a usable number.", "Send a JSON number above zero within the currency's decimals, or null.";
    ER305 "ER305" 400: "The quote currency amount is not a usable number.", "Send a JSON number above zero within the currency's decimals, or null.";
    ER306 "ER306" 400: "The payment method is blank although it is fixed.", "Send the payment method, or do not fix it.";
    ER307 "ER307" 400: "The payment method is not a string.", "Send a payment method code.";
    ER308 "ER308" 400: "The return URL is blank.", "Send an absolute URL, or leave it out.";
    ER309 "ER309" 400: "The return URL is not a string.", "Send an absolute URL.";
    ER310 "ER310" 400: "The callback URL is not a usable string.", "Send an absolute https URL or null.";
    ER311 "ER311" 400: "The partner order identifier is not a usable string.", "Send 1 to 255 characters, or null.";
    ER312 "ER312" 400: "The wallet address is not a usable string.", "Send an address of the base currency, or null.";
    ER313 "ER313" 400: "The wallet address tag is not a usable string.", "Send a tag of the base currency, or null.";
    ER314 "ER314" 400: "The expire time is not an integer.", "Send a whole number of seconds or null.";
    ER315 "ER315" 400: "The fee is not a usable number.", "Send a percentage from 0 to 5 as a number, or null.";
    ER316 "ER316" 400: "The fixed amount flag is not a boolean.", "Send true, false, 1, 0 or null.";
    ER317 "ER317" 400: "The fixed currency flag is not a boolean.", "Send true, false, 1, 0 or null.";
    ER318 "ER318" 400: "The fixed payment method flag is not a boolean.", "Send true, false, 1, 0 or null.";
    ER319 "ER319" 400: "The show wallet address flag is not a boolean.", "Send true, false, 1, 0 or null.";
    ER320 "ER320" 400: "Both amounts are set.", "Set exactly one of the two amounts, or none.";
    ER321 "ER321" 400: "The callback URL is blank.", "Send an absolute https URL, or leave it out.";
    ER322 "ER322" 400: "The expire time is blank.", "Send a whole number of seconds, or leave it out.";
    ER323 "ER323" 400: "The fee is blank.", "Send a percentage, or leave it out.";
    ER324 "ER324" 400: "Something went wrong.", "Contact support with the request id.";
    ER325 "ER325" 400: "The wallet address is required.", "Send the wallet address.";
    ER326 "ER326" 400: "The currency combination is invalid.", "Use a pair listed by the currency-pairs endpoint.";
    ER327 "ER327" 400: "The payment method is invalid.", "Use a method listed by the payment-methods endpoint.";
    ER328 "ER328" 400: "Something went wrong.", "Contact support with the request id.";
    ER329 "ER329" 400: "The expire time is out of bounds.", "Send 3600 to 86400 seconds.";
    ER330 "ER330" 400: "The amount is fixed, but not exactly one amount is set.", "Set exactly one of the two amounts.";
    ER331 "ER331" 400: "No signing secret is set for this client.", "Ask the operator for a signing secret.";
    ER332 "ER332" 400: "The payment method is null.", "Send a payment method code.";
    ER333 "ER333" 400: "The login token was not found.", "Request a new login token.";
    ER334 "ER334" 400: "The login token has expired.", "Request a new login token.";
    ER335 "ER335" 400: "No user is attached to the login token.", "Request a new login token.";
    ER336 "ER336" 400: "The signature is invalid.", "Sign the covered fields as documented, with the current secret.";
    ER337 "ER337" 400: "The base currency is blank.", "Send a crypto currency code.";
    ER338 "ER338" 400: "The signature is not a string.", "Send the signature as a string.";
    ER339 "ER339" 400: "A signature is required.", "Sign the covered fields that are set.";
    ER340 "ER340" 400: "The API key was not found.", "Ask the operator for an API key.";
    ER354 "ER354" 400 again: "The password reset could not be requested.", "Try again later.";
    ER359 "ER359" 400: "The wallet address is of an unknown kind.", "Send an address of the currency that is bought.";
    ER366 "ER366" 400: "The share token is not a string.", "Send a string or null.";
    ER367 "ER367" 400: "The share token is blank.", "Send the token, or leave it out.";
    ER380 "ER380" 400: "The account identifier is invalid.", "Send an identifier of the user's accounts.";
    ER393 "ER393" 400: "The token is an empty string.", "Send the token.";
    ER396 "ER396" 400: "The account was not found.", "Use an account of this user.";
    ER397 "ER397" 400: "The account is disabled.", "Use another account.";
    ER398 "ER398" 400: "The account is verified already.", "Nothing is left to do.";
    ER399 "ER399" 400: "The card holder's name is missing.", "Send the name on the card.";
    ER400 "ER400" 400 again: "The card verification could not be started.", "Try again later.";
    ER401 "ER401" 400: "The payment account could not be created.", "Start a new card session.";
    ER402 "ER402" 400: "The target currency's CAIP-19 identifier is not supported.", "Use an identifier of the currency-pairs endpoint.";
    ER403 "ER403" 400: "The source currency's CAIP-19 identifier is not supported.", "Use an identifier of the currency-pairs endpoint.";
    ER404 "ER404" 400: "The verification level is invalid.", "Use bronze, silver or gold.";
    ER417 "ER417" 400: "The payout method is invalid.", "Use bankTransfer, creditCard or walletpay, at least one.";
    ER700 "ER700" 400: "No user credential was sent.", "Send User-Authorization or User-Identifier.";
    ER701 "ER701" 400: "The user token has expired.", "Refresh the token, or let the user log in again.";
    ER702 "ER702" 400: "The user token is invalid.", "Let the user log in again.";
    ER703 "ER703" 400: "The user identifier does not belong to the user of the token.", "Send one of them, or both of the same user.";
    ER704 "ER704" 400: "The user identifier is empty.", "Send the identifier in User-Identifier.";
    ER705 "ER705" 400: "The user identifier is not linked to a user.", "Register or link the identifier first.";
    ER706 "ER706" 400: "The user identifier is used already.", "Use a unique identifier.";
    ER707 "ER707" 400: "The user identifier is malformed.", "Send 36 to 255 letters and digits; the dashes of a UUID are neither.";
    ER708 "ER708" 400 again: "A document for this side is pending review.", "Wait for the review.";
    ER709 "ER709" 400: "The user was not found or is deleted.", "Register the user again.";
    ER800 "ER800" 400: "The authorization token is invalid.", "Authenticate again.";
    ER801 "ER801" 400: "The authorization token has expired.", "Refresh the token, or authenticate again.";
    ER802 "ER802" 400: "No authorization was sent.", "Send Authorization: Bearer with a token, or X-Api-Key.";
    ER803 "ER803" 400: "More than one authorization was sent.", "Send exactly one of Authorization and X-Api-Key, once.";
    ER805 "ER805" 400: "The API key is invalid.", "Check the key, its expiry and its address list.";
    ER806 "ER806" 400: "The API key is empty.", "Send the key in X-Api-Key.";
    RateLimited "920" 429 again: "The rate limit is exceeded.", "Wait as long as Retry-After says. Also documented as ER920.";
    ER998 "ER998" 404: "There is no such route.", "Check the path and the method.";
    ER999 "ER999" 500 again: "Something went wrong on our side.", "Try again later; contact support with the request id if it persists.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Code;

    #[test]
    fn codes_are_unique() {
        let names: BTreeSet<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(names.len(), Code::ALL.len());
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
