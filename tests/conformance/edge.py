"""The edge under test: where it is, what the test put there, and calls that prepare a case.

`planted.json`, named by RAMPART_PLANTED, is written by tests/tests/e2e/conformance.
"""

import itertools
import json
import os
import threading

import requests

with open(os.environ["RAMPART_PLANTED"], encoding="utf-8") as file:
    PLANTED = json.load(file)
WALLET = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"
TIMEOUT_SECONDS = 30

local = threading.local()
number = itertools.count()


def send(method, url, **members):
    if not hasattr(local, "session"):
        local.session = requests.Session()
        local.session.verify = PLANTED["certificate"]
    return local.session.request(method, url, timeout=TIMEOUT_SECONDS, **members)


def granted(answer):
    """An answer's JSON, None without content."""
    answer.raise_for_status()
    return answer.json() if answer.content else None


def call(method, path, body=None, **headers):
    """A call of the partner."""
    headers = {"X-Api-Key": PLANTED["apiKey"]} | headers
    return granted(send(method, PLANTED["base"] + path, json=body, headers=headers))


def for_user(method, path, body=None):
    """A call of the partner for its user."""
    return call(method, path, body, **{"User-Identifier": PLANTED["identifier"]})


def private(method, path, body=None, token=None):
    """A call of the private listener under test."""
    headers = {"Authorization": "Bearer " + (token or PLANTED["token"])}
    return granted(send(method, PLANTED["private"] + path, json=body, headers=headers))


def confirm():
    body = {"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100}
    quote = for_user("POST", "/api/v1/buy/quote", body)["quote"]
    return {"quote": quote, "walletAddress": WALLET, "returnUrl": "https://shop.example/back"}


def order():
    return for_user("POST", "/api/v1/buy/confirm", confirm())["orderId"]
