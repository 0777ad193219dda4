"""What Schemathesis cannot know of an API, whichever it is: `partners.py`, `operators.py` or
`connectors.py` says what one of them needs.

Of every three well-formed requests to an operation, one is given all that no generator guesses (a
quote that was just made, an order that exists, the password of a user), one only the path of what
exists, so that its body is read, and one goes as it was generated.
"""

import collections
import importlib
import itertools
import os
import sys

import requests
import schemathesis

sys.path.insert(0, os.path.dirname(os.environ["RAMPART_HOOKS"]))
from edge import PLANTED, TIMEOUT_SECONDS, number  # noqa: E402

api = importlib.import_module(PLANTED["api"])
turns = collections.defaultdict(itertools.count)


@schemathesis.serializer("application/wasm", "text/csv")
def bytes_as_they_are(context, value):
    data = value if isinstance(value, bytes) else getattr(value, "data", value)
    return {"data": data if isinstance(data, bytes) else str(data).encode()}


@schemathesis.hook
def before_call(context, case, kwargs):
    """Gives a case what exists. What is sent is never a URL out there."""
    api.tame(case, case.operation.label)
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
    turn = next(turns[label]) % 3
    try:
        if turn == 0:
            plant(case, label, kwargs)
        if turn < 2 and label in api.PATHS:
            planted = {name: str(value) for name, value in api.PATHS[label]().items()}
            case.path_parameters = case.path_parameters | planted
    except requests.HTTPError as error:
        # Two cases may want the same thing at once, and some rates cannot be set.
        if error.response.status_code >= requests.codes.server_error:
            raise


def plant(case, label, kwargs):
    if label in api.UPLOADS:
        case.headers["Content-Type"], kwargs["data"] = api.UPLOADS[label]()
    if label in api.BODIES:
        case.body = api.BODIES[label]()
    if label in api.HEADERS:
        case.headers.update(api.HEADERS[label]())
    if label in api.QUERIES:
        case.query = api.QUERIES[label]()


granted = set()


@schemathesis.hook
def after_call(context, case, response):
    """Notes the operations that were seen to succeed."""
    label, operation = case.operation.label, case.operation
    if not 200 <= response.status_code < 300 or label in granted:
        return
    if response.request.method == operation.method.upper():
        granted.add(label)
        with open(PLANTED["granted"], "a", encoding="utf-8") as file:
            file.write(label + "\n")


enforced = set()


@schemathesis.check
def credentials_are_enforced(context, response, case):
    """Each credential of a request that was granted is spoilt in turn, then all are left out.
    `ignored_auth` of the tool would want 401 or 403 of the partners' API, too."""
    label = case.operation.label
    if not 200 <= response.status_code < 300 or label in enforced:
        return
    if not case.operation.definition.raw.get("security"):
        return
    sent = dict(response.request.headers)
    used = [name for name in sent if name.lower() in api.CREDENTIALS]
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
        assert api.is_refused(again), (
            f"{label} answers {again.status_code} {again.text} to spoilt credentials"
        )
    enforced.add(label)
