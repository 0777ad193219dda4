"""What Schemathesis cannot know of this API.

Half of the well-formed requests to an operation are given what no generator guesses: a quote that
was just made, an order that exists, the password of a user. `planted.json`, named by
RAMPART_PLANTED, says where the edge is and what the test put there.
"""

import collections
import hmac
import itertools
import json
import os
import threading
import urllib.parse

import requests
import schemathesis

with open(os.environ["RAMPART_PLANTED"], encoding="utf-8") as file:
    PLANTED = json.load(file)
CREDENTIALS = {"authorization", "x-api-key", "user-authorization", "user-identifier"}
WALLET = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"
TIMEOUT_SECONDS = 30

local = threading.local()


def call(method, path, body=None, **headers):
    """An answer of the edge to the partner, as JSON."""
    if not hasattr(local, "session"):
        local.session = requests.Session()
        local.session.verify = PLANTED["certificate"]
    headers = {"X-Api-Key": PLANTED["apiKey"]} | headers
    answer = local.session.request(
        method, PLANTED["base"] + path, json=body, headers=headers, timeout=TIMEOUT_SECONDS
    )
    answer.raise_for_status()
    return answer.json() if answer.content else None


def for_user(method, path, body=None):
    return call(method, path, body, **{"User-Identifier": PLANTED["identifier"]})


def credentials():
    return {"username": PLANTED["username"], "password": PLANTED["password"]}


def login():
    return {"emailAddress": PLANTED["loginEmail"], "password": PLANTED["loginPassword"]}


def buy_quote():
    body = {"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100}
    return for_user("POST", "/api/v1/buy/quote", body)["quote"]


def confirm():
    return {"quote": buy_quote(), "walletAddress": WALLET, "returnUrl": "https://shop.example/back"}


def confirm_offer():
    offer = {
        "baseCurrency": "BTC",
        "quoteCurrency": "EUR",
        "paymentMethod": "creditCard",
        "quoteCurrencyAmount": 100,
    }
    offer = call("POST", "/api/v2/buy/offer", offer)["offerUuid"]
    return confirm() | {"offerId": offer}


def order():
    return for_user("POST", "/api/v1/buy/confirm", confirm())["orderId"]


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

QUERIES = {"GET /api/v2/quotes/matrix": {"fiatAmount": "100", "currency": "EUR"}}


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

turns = collections.defaultdict(itertools.count)
number = itertools.count()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Every other well-formed request gets what exists. What is sent is never a URL out there."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    label = case.operation.label
    if case.headers.get("Idempotency-Key"):
        # The tool likes short keys: nearly every request would be a reuse with another body.
        case.headers["Idempotency-Key"] = f"{case.headers['Idempotency-Key'][:200]}-{next(number)}"
    if isinstance(case.body, dict):
        for name in ("url", "callbackUrl"):
            if isinstance(case.body.get(name), str) and case.body[name]:
                case.body = case.body | {name: f"http://127.0.0.1:9/{next(number)}"}
    if label == "POST /api/v2/sandbox/user/events":
        # Other requests need the user, who is neither to be disabled nor erased.
        case.body = {"event": "identity-verified"}
    if next(turns[label]) % 2 == 0:
        try:
            plant(case, label)
        except requests.HTTPError as error:
            # A client may log users in 60 times a minute, whatever its other rates are.
            if error.response.status_code != requests.codes.too_many:
                raise


def plant(case, label):
    if label in BODIES:
        case.body = BODIES[label]()
    if label in HEADERS:
        case.headers.update(HEADERS[label]())
    if label in QUERIES:
        case.query = QUERIES[label]
    if label in PATHS:
        planted = {name: str(value) for name, value in PATHS[label]().items()}
        case.path_parameters = case.path_parameters | planted


enforced = set()


@schemathesis.check
def credentials_are_enforced(context, response, case):
    """`ignored_auth` of the tool wants 401 or 403; this API refuses a credential with 400 and a
    code that says what is wrong with it. Each credential of a request that was granted is spoilt
    in turn, then all are left out."""
    label = case.operation.label
    if not 200 <= response.status_code < 300 or label in enforced:
        return
    if not case.operation.definition.raw.get("security"):
        return
    sent = dict(response.request.headers)
    used = [name for name in sent if name.lower() in CREDENTIALS]
    assert used, f"{label} was granted without a credential"
    without = {name: value for name, value in sent.items() if name not in used}
    for headers in [without] + [sent | {name: "Bearer spoilt"} for name in used]:
        again = requests.request(
            response.request.method,
            response.request.url,
            data=response.request.body,
            headers=headers,
            verify=PLANTED["certificate"],
            timeout=TIMEOUT_SECONDS,
        )
        codes = list(again.json().get("errors", {})) if again.content else []
        refused = codes and all(code[:4] in ("ER70", "ER80") for code in codes)
        assert again.status_code == 400 and refused, (
            f"{label} answers {again.status_code} {codes} to a request with spoilt credentials"
        )
    enforced.add(label)
