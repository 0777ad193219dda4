// What a policy in JavaScript is written with: its description, settings, exact decimals, UTF-8, base64.

import log from "rampart:policy/log@0.1.0";

/** A setting that may be left out; its type is text, flag, integer, decimal or texts. */
export function optional(key, type, help) {
  return { key, type, required: false, help };
}

/** A setting without which the policy cannot run. */
export function required(key, type, help) {
  return { key, type, required: true, help };
}

/** The export `meta` of a policy of this kind. `validate` returns problems: `{ key, problem }`. */
export function about(kind, { name, version, summary, settings = [], keys = [], validate = () => [] }) {
  return {
    describe: () => ({ name, version, summary, policies: [kind], config: settings, keys }),
    validateConfig(config) {
      const problems = validate(config);
      if (problems.length > 0) {
        throw problems;
      }
    },
  };
}

/** A decision that logs what it throws: the host learns no more of an exception than of any crash. */
export function logged(decide) {
  return (context, config, request) => {
    try {
      return decide(context, config, request);
    } catch (error) {
      if (error instanceof Error) {
        log.write("warn", `${error} ${error.stack.trim()}`);
      }
      throw error;
    }
  };
}

/** The value of a setting, or `otherwise` if it is not set. */
export function setting(config, key, otherwise) {
  const entry = config.find((entry) => entry.key === key);
  return entry === undefined ? otherwise : entry.value.val;
}

/** A fee of the partner. */
export function partnerFee(code, charge) {
  return { kind: "partner", code, charge };
}

/** A fee of the payment method. */
export function methodFee(code, charge) {
  return { kind: "payment-method", code, charge };
}

/** A charge of parts per million of the amount. */
export function rate(ppm) {
  return { tag: "rate", val: ppm };
}

/** A charge of a fixed amount, a decimal. */
export function flat(amount) {
  return { tag: "flat", val: amount };
}

/** True for a decimal without sign: digits, and a fraction or none. */
export function isDecimal(text) {
  return text.length <= 40 && /^(0|[1-9][0-9]*)(\.[0-9]+)?$/.test(text);
}

/** Compares two decimals exactly, as `sort` wants it. Numbers of JavaScript would round them. */
export function compare(left, right) {
  const places = Math.max(fraction(left).length, fraction(right).length);
  const [a, b] = [units(left, places), units(right, places)];
  return a < b ? -1 : Number(a > b);
}

function fraction(decimal) {
  return decimal.split(".")[1] ?? "";
}

function units(decimal, places) {
  return BigInt(decimal.split(".")[0] + fraction(decimal).padEnd(places, "0"));
}

// By functions of the engine: a loop over the characters burns ten times the fuel.

/** The bytes of a text in UTF-8. */
export function utf8(text) {
  return Uint8Array.fromBase64(btoa(unescape(encodeURIComponent(text))));
}

/** The bytes of base64 with padding (RFC 4648, section 4); undefined for anything else. */
export function base64Decode(text) {
  try {
    const bytes = Uint8Array.fromBase64(text);
    return bytes.toBase64() === text ? bytes : undefined;
  } catch {
    return undefined;
  }
}
