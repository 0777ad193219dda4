"""What requests to the partners' API are given."""

import hmac
import urllib.parse

from edge import PLANTED, WALLET, call, confirm, for_user, order

CREDENTIALS = {"authorization", "x-api-key", "user-authorization", "user-identifier"}


def credentials():
    return {"username": PLANTED["username"], "password": PLANTED["password"]}


def login():
    return {"emailAddress": PLANTED["loginEmail"], "password": PLANTED["loginPassword"]}


def confirm_offer():
    offer = {
        "baseCurrency": "BTC",
        "quoteCurrency": "EUR",
        "paymentMethod": "creditCard",
        "quoteCurrencyAmount": 100,
    }
    offer = call("POST", "/api/v2/buy/offer", offer)["offerUuid"]
    return confirm() | {"offerId": offer}


def sale():
    body = {"currencyPair": "BTC-EUR", "cryptoAmount": 0.01}
    return {"quote": for_user("POST", "/api/v1/sell/quote", body)["quote"]}


def sell_order():
    return for_user("POST", "/api/v1/sell/confirm", sale())["orderId"]


def onboarding():
    body = {"returnUrl": "https://shop.example/back", "locale": "nl-BE"}
    url = call("POST", "/api/v2/sell/onboarding", body)["onboardingUrl"]
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))


def wallet_proof():
    order = PLANTED["order"]
    signed = f"orderId={order}&reason=seen&walletAddress={WALLET}"
    key = PLANTED["signingSecret"].encode()
    signature = hmac.new(key, signed.encode(), "sha256").hexdigest()
    return {"orderId": order, "reason": "seen", "walletAddress": WALLET, "signature": signature}


def event():
    return call("GET", "/api/v2/events?limit=1")[0]["id"]


def webhook():
    known = call("GET", "/api/v2/webhooks")
    body = {"url": "http://127.0.0.1:9/hook"}
    return (known or [call("POST", "/api/v2/webhooks", body)])[0]["id"]


BODIES = {
    "POST /api/v1/authenticate": credentials,
    "POST /api/v1/refresh": lambda: {
        "refreshToken": call("POST", "/api/v1/authenticate", credentials())["refreshToken"]
    },
    "POST /api/v1/user/login": login,
    "POST /api/v2/user/link-identifier": lambda: {"identifier": "c" * 40},
    "POST /api/v1/buy/confirm": confirm,
    "POST /api/v2/buy/confirm": confirm_offer,
    "POST /api/v1/sell/confirm": sale,
    "POST /api/v2/sell/onboarding/verify": onboarding,
    "POST /api/v2/buy/orders/{id}/wallet-proof": wallet_proof,
    "POST /api/v2/wallets/check": lambda: {"currencyPair": "BTC-EUR", "walletAddress": WALLET},
}
PATHS = {
    "GET /api/v1/user/buy/orders/{id}": lambda: {"id": PLANTED["order"]},
    "GET /api/v2/buy/orders/{id}": lambda: {"id": PLANTED["order"]},
    "GET /api/v2/buy/orders/{id}/timeline": lambda: {"id": PLANTED["order"]},
    "GET /api/v2/buy/orders/{id}/receipt": lambda: {"id": PLANTED["completedOrder"]},
    "POST /api/v2/buy/orders/{id}/wallet-proof": lambda: {"id": PLANTED["order"]},
    "GET /api/v1/user/sell/orders/{id}": lambda: {"id": PLANTED["sellOrder"]},
    "GET /api/v2/sell/orders/{id}/timeline": lambda: {"id": PLANTED["sellOrder"]},
    "PATCH /api/v2/user/dca-codes/{code}": lambda: {"code": PLANTED["plan"]},
    "POST /api/v2/sandbox/orders/{id}/{event}": lambda: {"id": order()},
    "POST /api/v2/sandbox/sell/orders/{id}/{event}": lambda: {"id": sell_order()},
    "POST /api/v2/events/{id}/redeliver": lambda: {"id": event()},
    "DELETE /api/v2/webhooks/{id}": lambda: {"id": webhook()},
}

QUERIES = {"GET /api/v2/quotes/matrix": lambda: {"fiatAmount": "100", "currency": "EUR"}}
UPLOADS = {}


def session():
    return {
        "X-Api-Key": PLANTED["apiKey"],
        "User-Authorization": "Bearer " + call("POST", "/api/v1/user/login", login())["token"],
    }


HEADERS = {
    # A session that the request then ends.
    "POST /api/v1/user/logout": session,
    "POST /api/v2/user/link-identifier": session,
}


def tame(case, label):
    if label == "POST /api/v2/sandbox/user/events" and case.meta and case.meta.generation.mode.is_positive:
        # Other requests need the user, who is neither to be disabled nor erased.
        case.body = {"event": "identity-verified"}


def is_refused(answer):
    """400 with a code that says what is wrong with the credential."""
    codes = list(answer.json().get("errors", {})) if answer.content else []
    return answer.status_code == 400 and codes and all(c[:4] in ("ER70", "ER80") for c in codes)
