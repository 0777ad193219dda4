"""What requests to the operators' API are given.

`subject` is a user to be looked at, `spare` one to be changed and lost; so are partners, connectors
and operators of that name. `ruled` is a partner with policies, whose orders nobody makes.
"""

import base64
import threading

import requests
from edge import PLANTED, WALLET, call, number, order, private

CREDENTIALS = {"authorization"}
COMPONENT = base64.b64decode(PLANTED["component"])
RULED = "/admin/v1/partners/ruled"
FEE = f"{RULED}/policies/fee"
STATEMENT = b"date,amount,currency,reference,providerReference\n2026-03-01,7.00,EUR,lunch,bank-%d\n"

# What two cases want to bring about before they are sent.
policies = threading.RLock()


def name(of):
    return f"{of}-{next(number)}"


def unless_conflict(method, path, body=None):
    """A call that another case may have made before."""
    try:
        return private(method, path, body)
    except requests.HTTPError as error:
        if error.response.status_code != requests.codes.conflict:
            raise


def iban():
    """A Dutch IBAN that nobody has, with its check digits (ISO 7064, modulus 97)."""
    account = f"ABNA{next(number):010}"
    digits = "".join(str(int(c, 36)) for c in account + "NL00")
    return f"NL{98 - int(digits) % 97:02}{account}"


def payment_body():
    return {
        "partner": "shop",
        "kind": "received",
        "amount": 100,
        "currency": "EUR",
        "connector": "manual",
        "providerReference": name("payment"),
        "reason": "seen on the statement",
    }


def payment():
    return private("POST", "/admin/v1/payments", payment_body())["id"]


def offer():
    body = {"baseCurrency": "BTC", "quoteCurrency": "EUR", "paymentMethod": "creditCard"}
    return call("POST", "/api/v2/buy/offer", body | {"quoteCurrencyAmount": 100})["offerUuid"]


def delivery():
    return private("GET", "/admin/v1/deliveries?partner=shop&limit=1")[0]["id"]


def webhook(kept):
    """An endpoint of the shop: one of its own for what removes it, unless earlier cases left some."""
    endpoints = private("GET", "/admin/v1/partners/shop/webhooks")
    if endpoints and (kept or len(endpoints) > 4):
        return endpoints[0]["id"]
    return call("POST", "/api/v2/webhooks", {"url": "http://127.0.0.1:9/hook"})["id"]


def api_key():
    return private("POST", f"{RULED}/api-keys", {"name": "gone"})["id"]


def staff():
    return private("POST", f"{RULED}/staff", invitation())["id"]


def invitation():
    return {"email": f"{name('staff')}@mail.example.com", "role": "support"}


def verification_key():
    key = {"algorithm": "ed25519", "key": PLANTED["publicKey"]}
    private("PUT", f"{RULED}/verification-keys/gone", key)
    return "gone"


def operator_key():
    private("PUT", "/admin/v1/operator-keys/gone", {"publicKey": PLANTED["publicKey"]})
    return "gone"


def operator_token():
    return private("POST", "/admin/v1/operators/spare/tokens", {})["tokenId"]


def approval(requester):
    """A call of an operator that waits for another one."""
    body = {"name": name("held"), "roles": ["viewer"]}
    held = private("POST", "/admin/v1/operators", body, PLANTED[requester])
    return held["approval"]


def staged():
    """A version of the fee policy beside the one that serves."""
    with policies:
        history = private("GET", FEE)
        if history["active"] is None:
            private("POST", f"{FEE}/versions/1/activate", {})
        return 2 if history["active"] in (None, 1) else 1


def trial():
    with policies:
        unless_conflict("POST", f"{FEE}/versions/{staged()}/shadow", {})
    return {"slug": "ruled", "kind": "fee"}


def rolled():
    """A policy with a version to go back to."""
    with policies:
        unless_conflict("POST", f"{FEE}/versions/{staged()}/activate", {})
    return {"slug": "ruled", "kind": "fee"}


def active():
    staged()
    return {"slug": "ruled", "kind": "fee"}


def version():
    return {"slug": "ruled", "kind": "fee", "version": staged()}


def claimed():
    claim = {"subject": "user", "id": PLANTED["subject"]}
    private("POST", f"/admin/v1/reviews/user/{claim['id']}/claim")
    return claim


def encoded():
    return base64.b64encode(COMPONENT).decode()


UPLOADS = {
    "PUT /admin/v1/partners/{slug}/policies/{kind}": lambda: ("application/wasm", COMPONENT),
    "POST /admin/v1/reconciliations": lambda: ("text/csv", STATEMENT % next(number)),
}
REASON = {"reason": "of the conformance run"}
BODIES = {
    "POST /admin/v1/partners": lambda: {"slug": name("p"), "name": "Of a run", "mode": "test"},
    "PATCH /admin/v1/partners/{slug}": lambda: {"defaultFeePercentage": 1.5},
    "POST /admin/v1/partners/{slug}/api-keys": lambda: {"name": "office"},
    "POST /admin/v1/partners/{slug}/secrets/rotate": lambda: {"kind": "signing"},
    "POST /admin/v1/partners/{slug}/staff": invitation,
    "DELETE /admin/v1/partners/{slug}/policies/{kind}": lambda: REASON,
    "PUT /admin/v1/partners/{slug}/policies/{kind}/config": lambda: {"config": {}},
    "POST /admin/v1/partners/{slug}/policies/{kind}/rollback": lambda: REASON,
    "POST /admin/v1/partners/{slug}/policies/{kind}/dry-run": lambda: {
        "input": {"pay": {"amount": 600, "currency": "EUR"}},
        "version": 1,
    },
    "PUT /admin/v1/partners/{slug}/verification-keys/{name}": lambda: {
        "algorithm": "ed25519",
        "key": PLANTED["publicKey"],
    },
    "DELETE /admin/v1/partners/{slug}/verification-keys/{name}": lambda: {},
    "POST /admin/v1/partners/{slug}/policies/{kind}/versions": lambda: {"component": encoded()},
    "POST /admin/v1/partners/{slug}/policies/{kind}/versions/{version}/activate": lambda: REASON,
    "POST /admin/v1/partners/{slug}/policies/{kind}/versions/{version}/shadow": lambda: REASON,
    "DELETE /admin/v1/partners/{slug}/policies/{kind}/trial": lambda: REASON,
    "PUT /admin/v1/operator-keys/{name}": lambda: {"publicKey": PLANTED["publicKey"]},
    "DELETE /admin/v1/operator-keys/{name}": lambda: {},
    "PATCH /admin/v1/pairs/{pair}": lambda: {"spreadPercentage": 0.5},
    "PUT /admin/v1/prices/{pair}": lambda: {"price": 0.07},
    "PATCH /admin/v1/payment-methods/{code}": lambda: {"enabled": True},
    "POST /admin/v1/orders/{id}/events": lambda: {"event": "cancel"},
    "POST /admin/v1/orders/{id}/wallet-proof": lambda: REASON,
    "POST /admin/v1/payments": payment_body,
    "POST /admin/v1/payments/{id}/match": lambda: {"orderId": order()},
    "POST /admin/v1/payments/{id}/refund": lambda: REASON,
    "PATCH /admin/v1/users/{uuid}": lambda: {"level": "silver"},
    "POST /admin/v1/users/{uuid}/accounts": lambda: {
        "type": "bankTransfer",
        "identifier": iban(),
        "name": "Ada Lovelace",
    },
    "PATCH /admin/v1/users/{uuid}/accounts/{accountIdentifier}": lambda: {"verified": False},
    "POST /admin/v1/users/{uuid}/retained-record": lambda: REASON,
    "POST /admin/v1/users/{uuid}/retained-record/documents/{id}": lambda: REASON,
    "POST /admin/v1/screenings/{id}/decision": lambda: {"decision": "clear"} | REASON,
    "POST /admin/v1/users/{uuid}/dca-codes": lambda: {
        "cryptoCurrency": "BTC",
        "walletAddress": WALLET,
    },
    "POST /admin/v1/dca-codes/{code}/deposits": lambda: {
        "amount": 50,
        "currencyCode": "EUR",
        "reference": name("deposit"),
    },
    "POST /admin/v1/connectors": lambda: {"name": name("c"), "capabilities": ["payment.create"]},
    "POST /admin/v1/connectors/{name}/rotate": lambda: {"overlapSeconds": 0},
    "PUT /admin/v1/connectors/{name}/card-element": lambda: {"cardElement": None},
    "PUT /admin/v1/routes": lambda: private("GET", "/admin/v1/routes"),
    "POST /admin/v1/operators": lambda: {"name": name("o"), "roles": ["viewer"]},
    "PATCH /admin/v1/operators/{name}": lambda: {"roles": ["support"]},
    "POST /admin/v1/operators/{name}/tokens": lambda: {},
    "PUT /admin/v1/configuration": lambda: private("GET", "/admin/v1/configuration"),
}


def always(**members):
    return lambda: members


ORDER = always(id=PLANTED["order"])
SUBJECT = always(uuid=PLANTED["subject"])
SPARE = always(name="spare")
RULED_FEE = always(slug="ruled", kind="fee")
PATHS = {
    "GET /admin/v1/partners/{slug}": always(slug="shop"),
    "PATCH /admin/v1/partners/{slug}": always(slug="spare"),
    "POST /admin/v1/partners/{slug}/api-keys": always(slug="ruled"),
    "DELETE /admin/v1/partners/{slug}/api-keys/{id}": lambda: {"slug": "ruled", "id": api_key()},
    "POST /admin/v1/partners/{slug}/secrets/rotate": always(slug="ruled"),
    "GET /admin/v1/partners/{slug}/staff": always(slug="ruled"),
    "POST /admin/v1/partners/{slug}/staff": always(slug="ruled"),
    "DELETE /admin/v1/partners/{slug}/staff/{id}": lambda: {"slug": "ruled", "id": staff()},
    "DELETE /admin/v1/partners/{slug}/webhooks/{id}": lambda: {"slug": "shop", "id": webhook(False)},
    "POST /admin/v1/partners/{slug}/webhooks/{id}/test": lambda: {"slug": "shop", "id": webhook(True)},
    "GET /admin/v1/partners/{slug}/policies/{kind}": RULED_FEE,
    "PUT /admin/v1/partners/{slug}/policies/{kind}": RULED_FEE,
    "DELETE /admin/v1/partners/{slug}/policies/{kind}": active,
    "PUT /admin/v1/partners/{slug}/policies/{kind}/config": active,
    "POST /admin/v1/partners/{slug}/policies/{kind}/rollback": rolled,
    "POST /admin/v1/partners/{slug}/policies/{kind}/dry-run": active,
    "GET /admin/v1/partners/{slug}/verification-keys": always(slug="ruled"),
    "PUT /admin/v1/partners/{slug}/verification-keys/{name}": always(slug="ruled", name="kept"),
    "DELETE /admin/v1/partners/{slug}/verification-keys/{name}": lambda: {
        "slug": "ruled",
        "name": verification_key(),
    },
    "POST /admin/v1/partners/{slug}/policies/{kind}/versions": RULED_FEE,
    "POST /admin/v1/partners/{slug}/policies/{kind}/versions/{version}/activate": version,
    "POST /admin/v1/partners/{slug}/policies/{kind}/versions/{version}/shadow": version,
    "GET /admin/v1/partners/{slug}/policies/{kind}/trial": trial,
    "DELETE /admin/v1/partners/{slug}/policies/{kind}/trial": trial,
    "PUT /admin/v1/operator-keys/{name}": always(name="kept"),
    "DELETE /admin/v1/operator-keys/{name}": lambda: {"name": operator_key()},
    "PATCH /admin/v1/pairs/{pair}": always(pair="DOGE-EUR"),
    "PUT /admin/v1/prices/{pair}": always(pair="DOGE-EUR"),
    "PATCH /admin/v1/payment-methods/{code}": always(code="bankTransfer"),
    "GET /admin/v1/orders/{id}": ORDER,
    "POST /admin/v1/orders/{id}/events": lambda: {"id": order()},
    "POST /admin/v1/orders/{id}/replay": ORDER,
    "POST /admin/v1/offers/{uuid}/expire": lambda: {"uuid": offer()},
    "POST /admin/v1/orders/{id}/wallet-proof": lambda: {"id": order()},
    "GET /admin/v1/payments/{id}": lambda: {"id": payment()},
    "GET /admin/v1/payments/{id}/suggestions": lambda: {"id": payment()},
    "POST /admin/v1/payments/{id}/match": lambda: {"id": payment()},
    "POST /admin/v1/payments/{id}/refund": lambda: {"id": payment()},
    "GET /admin/v1/reconciliations/{id}": always(id=PLANTED["reconciliation"]),
    "GET /admin/v1/users/{uuid}": SUBJECT,
    "PATCH /admin/v1/users/{uuid}": always(uuid=PLANTED["spare"]),
    "GET /admin/v1/users/{uuid}/accounts": SUBJECT,
    "POST /admin/v1/users/{uuid}/accounts": SUBJECT,
    "PATCH /admin/v1/users/{uuid}/accounts/{accountIdentifier}": always(
        uuid=PLANTED["subject"], accountIdentifier=PLANTED["account"]
    ),
    "GET /admin/v1/users/{uuid}/proofs/{id}": always(
        uuid=PLANTED["subject"], id=PLANTED["proof"]
    ),
    "GET /admin/v1/users/{uuid}/documents/{id}": always(
        uuid=PLANTED["subject"], id=PLANTED["document"]
    ),
    "POST /admin/v1/users/{uuid}/retained-record": always(uuid=PLANTED["erased"]),
    "POST /admin/v1/users/{uuid}/retained-record/documents/{id}": always(
        uuid=PLANTED["erased"], id=PLANTED["retained"]
    ),
    "GET /admin/v1/screenings/{id}": always(id=PLANTED["screening"]),
    "POST /admin/v1/screenings/{id}/decision": always(id=PLANTED["screening"]),
    "POST /admin/v1/reviews/{subject}/{id}/claim": claimed,
    "DELETE /admin/v1/reviews/{subject}/{id}/claim": claimed,
    "POST /admin/v1/users/{uuid}/dca-codes": SUBJECT,
    "GET /admin/v1/dca-codes/{code}": always(code=PLANTED["plan"]),
    "POST /admin/v1/dca-codes/{code}/deposits": always(code=PLANTED["plan"]),
    "GET /admin/v1/deliveries/{id}": lambda: {"id": delivery()},
    "POST /admin/v1/deliveries/{id}/redeliver": lambda: {"id": delivery()},
    "GET /admin/v1/connectors/{name}": SPARE,
    "POST /admin/v1/connectors/{name}/rotate": SPARE,
    "PUT /admin/v1/connectors/{name}/card-element": SPARE,
    "PATCH /admin/v1/operators/{name}": SPARE,
    "POST /admin/v1/operators/{name}/tokens": SPARE,
    "DELETE /admin/v1/operators/{name}/tokens/{id}": lambda: {
        "name": "spare",
        "id": operator_token(),
    },
    "POST /admin/v1/approvals/{id}/grant": lambda: {"id": approval("ada")},
    "POST /admin/v1/approvals/{id}/refuse": lambda: {"id": approval("bob")},
}
QUERIES = {
    "POST /admin/v1/reconciliations": always(connector="manual"),
    "PUT /admin/v1/configuration": always(dryRun="false"),
    "PUT /admin/v1/partners/{slug}/policies/{kind}": always(reason="of the conformance run"),
}


def compliance():
    """Credentials of a role that the break-glass owner does not have."""
    return {"Authorization": "Bearer " + PLANTED["compliance"]}


HEADERS = {
    "POST /admin/v1/users/{uuid}/retained-record": compliance,
    "POST /admin/v1/users/{uuid}/retained-record/documents/{id}": compliance,
}


def tame(case, label):
    """Nothing for which the run itself would stand still."""


def is_refused(answer):
    return answer.status_code == 401
