// A partner fee of one rate, with countries that pay none.

import { about, logged, optional, partnerFee, rate, setting } from "./rampart-policy.js";

// 1.25 %, in parts per million.
const DEFAULT_RATE = 12_500;

export const meta = about("fee", {
  name: "example/@name@",
  version: "1.0.0",
  summary: "A partner fee of one rate, with countries that pay none.",
  settings: [
    optional("free-countries", "texts", "countries that pay nothing, as ISO codes"),
    optional("rate", "integer", "the fee, in parts per million of the amount"),
  ],
});

export const fee = {
  price: logged((context, config, { country }) => {
    const isFree = setting(config, "free-countries", []).includes(country);
    const ppm = isFree ? 0 : setting(config, "rate", DEFAULT_RATE);
    return {
      lines: [partnerFee("flat-rate", rate(ppm))],
      spread: 0,
      rule: isFree ? "free-country" : "everyone",
    };
  }),
};
