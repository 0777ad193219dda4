"""The README's purchase with the packed Python client: credentials from the environment, as `rampart
demo` prints them. The last line says the order's status."""

import os
import secrets
import sys
import time

import httpx
from rampart_client import AuthenticatedClient
from rampart_client.api.orders import (
    confirm_buy_v1,
    list_orders,
    read_order,
    read_order_timeline,
    read_receipt,
)
from rampart_client.api.quotes import quote_buy
from rampart_client.api.users import link_identifier, log_in, register_user
from rampart_client.api.verification import read_verification_status, verify_iban_by_photo
from rampart_client.api.webhooks import list_webhooks, register_webhook
from rampart_client.models import (
    ConfirmBuyV1Request,
    LinkIdentifierRequest,
    LogInRequest,
    QuoteBuyRequest,
    RegisterUserRequest,
    RegisterWebhookRequest,
    VerifyIbanByPhotoRequest,
)

ADMIN = {"Authorization": "Bearer " + os.environ["ADMIN_TOKEN"]}
WALLET = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"
PATIENCE_SECONDS = 30


def granted(answer):
    """What an operation answers, if it was granted."""
    if answer.status_code >= 300:
        sys.exit(f"{answer.status_code}: {answer.content.decode()}")
    return answer.parsed


client = AuthenticatedClient(
    base_url=os.environ["BASE"],
    token=os.environ["API_KEY"],
    prefix="",
    auth_header_name="X-Api-Key",
    verify_ssl=os.environ["CURL_CA_BUNDLE"],
)

hook = RegisterWebhookRequest(url=os.environ["RECEIVER"] + "/hook")
if not granted(list_webhooks.sync_detailed(client=client)):
    granted(register_webhook.sync_detailed(client=client, body=hook))

name = secrets.token_hex(20)
password = "correct horse"
registration = RegisterUserRequest.from_dict(
    {
        "identifier": name,
        "email": f"{name}@example.com",
        "emailCode": "000000",
        "password": password,
        "firstName": "Ada",
        "lastName": "Lovelace",
        "dateOfBirth": "1990-12-10",
        "country": "NL",
        "privacyAgreement": True,
    }
)
granted(register_user.sync_detailed(client=client, body=registration))

login = LogInRequest(email_address=f"{name}@example.com", password=password)
session = granted(log_in.sync_detailed(client=client, body=login))
for_session = client.with_headers({"User-Authorization": f"Bearer {session.token}"})
link = LinkIdentifierRequest(identifier=f"shop{name}")
granted(link_identifier.sync_detailed(client=for_session, body=link))
# An httpx client that exists already is shared: the user's own has other headers.
mine = AuthenticatedClient(
    base_url=os.environ["BASE"],
    token=os.environ["API_KEY"],
    prefix="",
    auth_header_name="X-Api-Key",
    verify_ssl=os.environ["CURL_CA_BUNDLE"],
    headers={"User-Identifier": f"shop{name}"},
)

photo = VerifyIbanByPhotoRequest(
    name="Ada Lovelace", iban="NL58ABNA0000000001", proof="iVBORw0KGgoAAAANSUhEUgAAAAE="
)
granted(verify_iban_by_photo.sync_detailed(client=mine, body=photo))
httpx.patch(
    f"{os.environ['ADMIN']}/admin/v1/users/{session.uuid}",
    headers=ADMIN,
    json={
        "verification": {
            "identity": "verified",
            "amld5": "verified",
            "residentialAddress": "verified",
        }
    },
).raise_for_status()
assert granted(read_verification_status.sync_detailed(client=mine)) == []

asked = QuoteBuyRequest.from_dict(
    {"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 250}
)
quote = granted(quote_buy.sync_detailed(client=mine, body=asked))
confirm = ConfirmBuyV1Request(
    quote=quote.quote, wallet_address=WALLET, return_url="https://shop.example/thanks"
)
confirmed = granted(confirm_buy_v1.sync_detailed(client=mine, body=confirm))
order = str(confirmed.order_id)

verify = os.environ["CURL_CA_BUNDLE"]
paid = httpx.post(confirmed.payment_url, data={"action": "pay"}, verify=verify)
assert paid.headers["location"] == "https://shop.example/thanks", paid

end = time.monotonic() + PATIENCE_SECONDS
while (bought := granted(read_order.sync_detailed(order, client=mine))).status != "completed":
    assert time.monotonic() < end, bought
    time.sleep(0.5)
steps = granted(read_order_timeline.sync_detailed(order, client=mine))
assert [step.cause for step in steps][0] == "confirmed"
assert [one.id for one in granted(list_orders.sync_detailed(client=mine))] == [bought.id]
signed = granted(read_receipt.sync_detailed(order, client=mine))
assert signed.receipt.order_id == bought.id and signed.jws.count(".") == 2
print(bought.status)
