"""localstripe, with what a connector relies on and it lacks: idempotency keys, cards that are charged by
their holder's browser, disputes, events of refunds and cancellations. It keeps nothing on disk, and kills a
process at one of its requests where a test asks for it.
"""

import asyncio
import json
import os
import re
import signal
import socket
import sys
import time
from pathlib import Path

from aiohttp import web
from localstripe import resources
from localstripe.errors import UserError
from localstripe.resources import Event, PaymentIntent, PaymentMethod, Refund, StripeObject
from localstripe.webhooks import schedule_webhook

CONFIRM = re.compile(r"/v1/payment_intents/(pi_\w+)/confirm")
CARD_FORM = Path(__file__).with_name("card_form.js").read_text()

# Answers by path and idempotency key.
answers = {}
# The process that is killed, at its next request of which method and path, and whether that takes effect.
# Its request waits until its number is told: a process that is about to start has none.
target = {"pid": None, "method": None, "path": None, "effect": False}


class Dispute(StripeObject):
    object = "dispute"
    _id_prefix = "dp_"

    def __init__(self, payment_intent, status="needs_response"):
        intent = PaymentIntent._api_retrieve(payment_intent)
        super().__init__()
        self.amount = intent.amount
        self.currency = intent.currency
        self.payment_intent = payment_intent
        self.reason = "fraudulent"
        self.status = status
        self.balance_transactions = [movement(self, -self.amount)]


def movement(dispute, amount):
    """What a dispute has taken from the account, or given back to it."""
    kind = "withdrawal" if amount < 0 else "return"
    return {"id": f"txn_{kind}_{dispute.id}", "amount": amount, "created": int(time.time())}


def cancel(id, **members):
    intent = plain_cancel(id, **members)
    intent.canceled_at = int(time.time())
    intent.cancellation_reason = None
    schedule_webhook(Event("payment_intent.canceled", intent))
    return intent


def refund(self, *arguments, **members):
    plain_refund(self, *arguments, **members)
    schedule_webhook(Event("refund.created", self))


resources.Store.dump_to_disk = lambda self: None
plain_refund, Refund.__init__ = Refund.__init__, refund
plain_cancel = PaymentIntent._api_cancel
resources.extra_apis[:] = [
    (method, url, cancel if url.endswith("payment_intents/{id}/cancel") else call)
    for method, url, call in resources.extra_apis
]

# Its routes are made of the above when it is imported.
from localstripe import server  # noqa: E402


def charge(id, client_secret, payment_method_data):
    """Charges the card that a browser sends, as far as it needs no authentication."""
    intent = PaymentIntent._api_retrieve(id)
    if client_secret != intent.client_secret:
        raise UserError(401, "Unauthorized")
    if intent.status != "requires_payment_method":
        error = {"payment_intent": intent._export()}
        raise UserError(400, "This payment is " + intent.status + ".", error)
    intent.payment_method = PaymentMethod(**payment_method_data).id
    intent.latest_charge = None
    intent._confirm(on_failure_now=intent._report_failure)
    return server.json_response(intent._export())


@web.middleware
async def browsers(request, handler):
    """What Stripe's script may do with a public key."""
    confirmed = CONFIRM.fullmatch(request.path)
    if confirmed and request.method == "POST":
        body = await request.json()
        if str(body.get("key", "")).startswith("pk_"):
            return charge(confirmed[1], body["client_secret"], body["payment_method_data"])
    response = await handler(request)
    if request.path.startswith("/js.stripe.com/"):
        response.text += CARD_FORM
    return response


@web.middleware
async def idempotency(request, handler):
    key = request.headers.get("Idempotency-Key")
    if key is None or request.method != "POST":
        return await handler(request)
    body = await request.read()
    known = answers.get((request.path, key))
    if known is None:
        response = await handler(request)
        known = answers[request.path, key] = (body, response.status, response.body)
    if known[0] != body:
        raise UserError(400, "Keys are for one request.", {"type": "idempotency_error"})
    return web.Response(status=known[1], body=known[2], content_type="application/json")


@web.middleware
async def killing(request, handler):
    """Kills the target at its request, before that has an effect or before it is answered."""
    # The connector alone comes with a bearer token.
    is_connector = request.headers.get("Authorization", "").startswith("Bearer ")
    is_it = (request.method, request.path) == (target["method"], target["path"])
    if not is_connector or not is_it:
        return await handler(request)
    if target["effect"]:
        await handler(request)
    await end_target()


async def end_target():
    target["method"] = None
    while target["pid"] is None:
        await asyncio.sleep(0.01)
    os.kill(target["pid"], signal.SIGKILL)
    raise web.HTTPBadGateway()


async def kill(request):
    target.update(await request.json())
    return web.json_response({})


async def dispute(request):
    made = Dispute(**await request.json())
    schedule_webhook(Event("charge.dispute.created", made))
    return server.json_response(made._export())


async def close_dispute(request):
    found = Dispute._api_retrieve(request.match_info["id"])
    found.status = (await request.json())["status"]
    if found.status == "won":
        found.balance_transactions = [*found.balance_transactions, movement(found, found.amount)]
    schedule_webhook(Event("charge.dispute.closed", found))
    return server.json_response(found._export())


def start():
    app = server.app
    # The first is the outermost, but localstripe's own, which tells of errors.
    app.middlewares[1:1] = [killing, browsers, idempotency]
    app.router.add_get("/v1/disputes/{id}", server.api_retrieve(Dispute, ""))
    app.router.add_post("/_config/disputes", dispute)
    app.router.add_post("/_config/disputes/{id}", close_dispute)
    app.router.add_post("/_config/kill", kill)
    port = int(sys.argv[sys.argv.index("--port") + 1]) if "--port" in sys.argv else 0
    listener = socket.create_server(("127.0.0.1", port))
    print(f"listening http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    web.run_app(app, sock=listener, print=None, access_log=None)


if __name__ == "__main__":
    start()
