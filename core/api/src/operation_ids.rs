//! Names of the partners' operations, of which generators make functions. Where two versions of an
//! operation stand side by side, the earlier one has its version at the end.

/// The name of an operation: method and path, name.
pub(super) const OPERATION_IDS: &[(&str, &str)] = &[
    // Credentials
    ("POST /api/v1/authenticate", "authenticate"),
    ("POST /api/v1/refresh", "refreshToken"),
    // Verification
    ("GET /api/v1/user/verify/amld5", "listAmld5Questions"),
    ("POST /api/v1/user/verify/amld5", "answerAmld5Questions"),
    ("GET /api/v2/user/verification-status", "readVerificationStatus"),
    ("POST /api/v1/user/verify/card", "verifyCard"),
    ("POST /api/v1/user/verify/payprovider", "verifyWalletProvider"),
    ("POST /api/v1/user/verify/iban/photo", "verifyIbanByPhoto"),
    // Accounts and limits
    ("POST /api/v2/user/accounts/cards/processor", "addCard"),
    ("GET /api/v2/user/limit", "readUserLimits"),
    // The market
    ("GET /api/v1/system/currency-pairs", "listCurrencyPairs"),
    ("GET /api/v1/system/info", "readSystemInfo"),
    ("GET /api/v1/prices", "listPricesV1"),
    ("GET /api/v2/prices", "listPrices"),
    ("GET /api/v2/client/info", "readClientInfo"),
    ("GET /api/v2/buy/payment-methods", "listPaymentMethods"),
    // Quotes
    ("POST /api/v1/buy/quote", "quoteBuy"),
    ("POST /api/v1/sell/quote", "quoteSell"),
    ("GET /api/v2/quotes/matrix", "compareQuotes"),
    // Offers and checkouts
    ("POST /api/v2/buy/offer", "createOffer"),
    ("POST /api/v2/buy/checkout", "createCheckout"),
    // Orders
    ("POST /api/v1/buy/confirm", "confirmBuyV1"),
    ("POST /api/v2/buy/confirm", "confirmBuy"),
    ("GET /api/v1/user/buy/orders/{id}", "readOrderV1"),
    ("GET /api/v2/buy/orders/{id}", "readOrder"),
    ("GET /api/v2/buy/orders", "listOrders"),
    ("GET /api/v2/buy/orders/{id}/timeline", "readOrderTimeline"),
    ("GET /api/v2/buy/orders/{id}/receipt", "readReceipt"),
    ("POST /api/v2/buy/orders/{id}/wallet-proof", "proveWallet"),
    ("POST /api/v2/wallets/check", "checkWallet"),
    // Users
    ("POST /api/v2/user", "registerUser"),
    ("PATCH /api/v2/user", "updateUser"),
    ("POST /api/v1/user/login", "logIn"),
    ("POST /api/v1/user/logout", "logOut"),
    ("GET /api/v1/user/login-token", "createLoginToken"),
    ("GET /api/v1/user/exists", "checkEmailAddress"),
    ("POST /api/v1/user/reset-password", "requestPasswordReset"),
    ("GET /api/v1/user/info", "readUser"),
    ("POST /api/v1/user/register-identifier", "registerIdentifier"),
    ("POST /api/v2/user/link-identifier", "linkIdentifier"),
    // Savings plans
    ("GET /api/v2/user/dca-codes", "listSavingsPlans"),
    ("PATCH /api/v2/user/dca-codes/{code}", "updateSavingsPlan"),
    // Selling
    ("POST /api/v1/sell/confirm", "confirmSell"),
    ("GET /api/v1/user/sell/orders", "listSellOrders"),
    ("GET /api/v1/user/sell/orders/{id}", "readSellOrder"),
    ("GET /api/v2/sell/orders/{id}/timeline", "readSellOrderTimeline"),
    ("POST /api/v2/sell/onboarding", "createSellOnboarding"),
    ("POST /api/v2/sell/onboarding/verify", "verifySellOnboarding"),
    // Webhooks and the sandbox
    ("GET /api/v2/events", "listEvents"),
    ("POST /api/v2/events/{id}/redeliver", "redeliverEvent"),
    ("POST /api/v2/webhooks", "registerWebhook"),
    ("GET /api/v2/webhooks", "listWebhooks"),
    ("DELETE /api/v2/webhooks/{id}", "removeWebhook"),
    ("POST /api/v2/sandbox/orders/{id}/{event}", "simulateOrderEvent"),
    ("POST /api/v2/sandbox/sell/orders/{id}/{event}", "simulateSellOrderEvent"),
    ("POST /api/v2/sandbox/user/events", "simulateUserEvent"),
    ("GET /api/v2/sandbox/scenarios", "listScenarios"),
    ("POST /api/v2/sandbox/signature", "explainSignature"),
    // The service itself
    ("GET /api/v2/system/errors", "listErrors"),
    ("GET /.well-known/jwks.json", "readSigningKeys"),
    ("GET /openapi.json", "readOpenApi"),
];
