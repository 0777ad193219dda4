// A partner fee of one rate, which large amounts do not pay, and the cost of the payment method.
//
// - `rate`: the partner's fee, in parts per million
// - `free-from`: the amount from which there is no partner fee, in the pay currency
// - `methods`: `creditCard/EUR=9000+0.25` is 0.9 % and 0.25 for who pays EUR by this method

import {
  about,
  compare,
  flat,
  isDecimal,
  logged,
  methodFee,
  optional,
  partnerFee,
  rate,
  setting,
} from "../rampart-policy.js";

const DEFAULT_RATE = 12_500;
const PPM_MAX = 1_000_000;

export const meta = about("fee", {
  name: "rampart/method-fee",
  version: "1.0.0",
  summary: "A partner fee of one rate, and the cost of the payment method.",
  settings: [
    optional("free-from", "decimal", "amount from which there is no partner fee"),
    optional("methods", "texts", "METHOD/CURRENCY=PPM+AMOUNT: cost of a payment method"),
    optional("rate", "integer", "the partner's fee, in ppm"),
  ],
  validate(config) {
    const unusable = setting(config, "methods", []).filter((text) => cost(text) === undefined);
    return unusable.map((text) => ({ key: "methods", problem: `has \`${text}\`` }));
  },
});

export const fee = {
  price: logged((context, config, { pay, paymentMethod }) => {
    const freeFrom = setting(config, "free-from");
    const isFree = freeFrom !== undefined && compare(pay.amount, freeFrom) >= 0;
    const lines = isFree ? [] : [partnerFee("rate", rate(setting(config, "rate", DEFAULT_RATE)))];

    const prefix = `${paymentMethod}/${pay.currency}=`;
    const text = setting(config, "methods", []).find((text) => text.startsWith(prefix));
    if (text !== undefined) {
      const { ppm, amount } = cost(text);
      lines.push(methodFee("method-rate", rate(ppm)), methodFee("method-amount", flat(amount)));
    }
    return { lines, spread: 0, rule: isFree ? "large-amount" : "usual" };
  }),
};

/** Rate and amount of a text of `methods`; undefined if it has another form. */
function cost(text) {
  const [, digits, amount] = /^\w+\/[\w.]+=([0-9]+)\+(.+)$/.exec(text) ?? [];
  const ppm = Number(digits);
  return ppm <= PPM_MAX && isDecimal(amount) ? { ppm, amount } : undefined;
}
