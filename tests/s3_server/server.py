"""moto's S3 with one bucket and one access key, whose signature and rights it checks at every request. It keeps
nothing on disk. GET /_objects shows what is in the bucket without a signature.
"""

import base64
import json
import logging
import os
import sys

# Before moto reads it: every request is judged.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "0"

from moto.backends import get_backend  # noqa: E402
from moto.core import DEFAULT_ACCOUNT_ID  # noqa: E402
from moto.server import DomainDispatcherApplication, create_backend_app  # noqa: E402
from werkzeug.serving import make_server  # noqa: E402

BUCKET = "documents"
REGION = "us-east-1"
ACCESS_KEY = ("AKIARAMPARTTESTS0000", "the-secret-of-the-tests-of-documents-000")
# As the reference of the configuration names them.
ACTIONS = ["s3:PutObject", "s3:GetObject", "s3:DeleteObject", "s3:ListBucket"]

s3 = get_backend("s3")[DEFAULT_ACCOUNT_ID]["aws"]
iam = get_backend("iam")[DEFAULT_ACCOUNT_ID]["aws"]
moto = DomainDispatcherApplication(create_backend_app)


def prepare():
    s3.create_bucket(BUCKET, REGION)
    iam.create_user(REGION, "rampart")
    statement = {"Effect": "Allow", "Action": ACTIONS, "Resource": "*"}
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    iam.put_user_policy("rampart", "documents", json.dumps(policy))
    key = iam.create_access_key("rampart")
    key.access_key_id, key.secret_access_key = ACCESS_KEY


def app(environ, start_response):
    if environ["PATH_INFO"] != "/_objects":
        return moto(environ, start_response)
    keys = s3.buckets[BUCKET].keys
    objects = {}
    # Edges write and remove beside this: the names are taken at once, and one may be gone by now.
    for name in list(keys):
        key = keys.get(name)
        try:
            objects[name] = base64.b64encode(key.value).decode()
        except (AttributeError, ValueError):
            # Removed: there is no key any more, or its content is closed.
            continue
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(objects).encode()]


def start():
    prepare()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    port = int(sys.argv[sys.argv.index("--port") + 1]) if "--port" in sys.argv else 0
    server = make_server("127.0.0.1", port, app, threaded=True)
    print(f"listening http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    start()
