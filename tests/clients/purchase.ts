// The README's purchase with the packed TypeScript client: credentials from the environment, as
// `rampart demo` prints them. The last line says the order's status.

import {
  confirmBuyV1,
  linkIdentifier,
  listOrders,
  logIn,
  quoteBuy,
  readOrder,
  readOrderTimeline,
  readReceipt,
  readVerificationStatus,
  registerUser,
  verifyIbanByPhoto,
} from "rampart-client";
import { client } from "rampart-client/client";

declare const process: { env: Record<string, string>; exit(status: number): never };

const WALLET = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq";
const PATIENCE_MS = 30_000;

const { BASE, API_KEY, ADMIN, ADMIN_TOKEN } = process.env;
const credentials: Record<string, string | undefined> = { "X-Api-Key": API_KEY };
client.setConfig({ baseUrl: BASE!, auth: (scheme) => credentials[scheme.name ?? ""] });

/** What an operation answers, if it was granted. */
async function granted<T>(answer: Promise<{ data?: T; error?: unknown }>): Promise<T> {
  const { data, error } = await answer;
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

function expect(holds: boolean, what: unknown): void {
  if (!holds) throw new Error(JSON.stringify(what));
}

const random = crypto.getRandomValues(new Uint8Array(20));
const name = Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
const password = "correct horse";
await granted(
  registerUser({
    body: {
      identifier: name,
      email: `${name}@example.com`,
      emailCode: "000000",
      password,
      firstName: "Ada",
      lastName: "Lovelace",
      dateOfBirth: "1990-12-10",
      country: "NL",
      privacyAgreement: true,
    },
  }),
);
const session = await granted(
  logIn({ body: { emailAddress: `${name}@example.com`, password } }),
);
credentials["User-Authorization"] = `Bearer ${session.token}`;
await granted(linkIdentifier({ body: { identifier: `shop${name}` } }));
credentials["User-Identifier"] = `shop${name}`;

const proof = "iVBORw0KGgoAAAANSUhEUgAAAAE=";
await granted(
  verifyIbanByPhoto({ body: { name: "Ada Lovelace", iban: "NL58ABNA0000000001", proof } }),
);
const verified = await fetch(`${ADMIN}/admin/v1/users/${session.uuid}`, {
  method: "PATCH",
  headers: { Authorization: `Bearer ${ADMIN_TOKEN}`, "Content-Type": "application/json" },
  body: JSON.stringify({
    verification: { identity: "verified", amld5: "verified", residentialAddress: "verified" },
  }),
});
expect(verified.ok, verified.status);
const open = await granted(readVerificationStatus());
expect(open.length === 0, open);

const quote = await granted(
  quoteBuy({ body: { currencyPair: "BTC-EUR", paymentMethod: "creditCard", fiatAmount: 250 } }),
);
const returnUrl = "https://shop.example/thanks";
const confirmed = await granted(
  confirmBuyV1({ body: { quote: quote.quote, walletAddress: WALLET, returnUrl } }),
);
const path = { id: String(confirmed.orderId) };

const paid = await fetch(confirmed.paymentUrl, {
  method: "POST",
  body: new URLSearchParams({ action: "pay" }),
  redirect: "manual",
});
expect(paid.headers.get("location") === returnUrl, paid.status);

const end = Date.now() + PATIENCE_MS;
let order = await granted(readOrder({ path }));
while (order.status !== "completed") {
  expect(Date.now() < end, order);
  await new Promise((resolve) => setTimeout(resolve, 500));
  order = await granted(readOrder({ path }));
}
const steps = await granted(readOrderTimeline({ path }));
expect(steps[0]?.cause === "confirmed", steps);
const orders = await granted(listOrders());
expect(orders.length === 1 && orders[0]?.id === order.id, orders);
const signed = await granted(readReceipt({ path }));
expect(signed.receipt.orderId === order.id && signed.jws.split(".").length === 3, signed);
console.log(order.status);
