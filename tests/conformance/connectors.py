"""What requests to the connectors' API are given: commands of orders that were just made."""

import threading

from edge import PLANTED, number, order, private

CREDENTIALS = {"authorization"}
LEASE = {"max": 1, "waitSeconds": 0, "leaseSeconds": 600}

lock = threading.Lock()
local = threading.local()


def leased():
    """A leased command, of a new order if none waits."""
    # Else another case may lease the command of this one's order.
    with lock:
        for _ in range(2):
            if commands := private("POST", "/connectors/v1/commands/lease", LEASE):
                return commands[0]
            order()
        return private("POST", "/connectors/v1/commands/lease", LEASE)[0]


def held():
    """A command that this thread's cases share, as long as its lease lasts."""
    if not hasattr(local, "held"):
        local.held = leased()
    return local.held


def result():
    """The result of a command that is leased for it alone."""
    local.ended = leased()
    # It may be a payout, which names its transaction.
    done = {"transactionId": local.ended["id"]}
    return {"leaseToken": local.ended["leaseToken"], "outcome": "done", "result": done}


def ended():
    return getattr(local, "ended", None) or held()


def event():
    return {
        "id": f"event-{next(number)}",
        "kind": "payment.received",
        "occurredAt": "2026-03-01T12:00:00Z",
        "partner": PLANTED["slug"],
        "orderId": PLANTED["order"],
        "providerReference": f"payment-{next(number)}",
        "amount": 100,
        "currency": "EUR",
    }


BODIES = {
    "POST /connectors/v1/commands/lease": lambda: LEASE | {"kinds": ["payment.cancel"]},
    "PUT /connectors/v1/commands/{id}/checkpoint": lambda: {
        "leaseToken": held()["leaseToken"],
        "checkpoint": {"nonce": next(number)},
    },
    "POST /connectors/v1/commands/{id}/result": result,
    "POST /connectors/v1/events": event,
}
PATHS = {
    "PUT /connectors/v1/commands/{id}/checkpoint": lambda: {"id": held()["id"]},
    "POST /connectors/v1/commands/{id}/result": lambda: {"id": ended()["id"]},
}
QUERIES = HEADERS = UPLOADS = {}


def tame(case, label):
    if label == "POST /connectors/v1/commands/lease" and isinstance(case.body, dict):
        if case.body.get("waitSeconds") in range(1, 31):
            case.body = case.body | {"waitSeconds": 0}


def is_refused(answer):
    return answer.status_code == 401
