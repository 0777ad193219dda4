// Offers and onboarding links signed with HMAC-SHA-256.
//
// The signed text is every field as `name=value` on a line of its own, sorted by name; `signature` is
// the base64 of the MAC. The key stays in the host, the policy only names it.

import crypto from "rampart:policy/crypto@0.1.0";
import { about, base64Decode, logged, optional, setting, utf8 } from "./rampart-policy.js";

const ALGORITHM = "hmac-sha256";

export const meta = about("signature", {
  name: "example/@name@",
  version: "1.0.0",
  summary: "Offers and onboarding links signed with HMAC-SHA-256.",
  settings: [optional("key", "text", "the name of the key; partner-hmac if not set")],
  keys: ["partner-hmac"],
});

export const signature = {
  verify: logged((context, config, { fields, claimed }) => {
    if (claimed === null) {
      return rejected("missing-signature");
    }
    const mac = base64Decode(claimed);
    if (mac === undefined) {
      return rejected("malformed-signature");
    }
    if (!fields.every(isOneLine)) {
      return rejected("not-covered");
    }
    const key = setting(config, "key", "partner-hmac");
    const message = fields.map(({ name, value }) => `${name}=${value}\n`).join("");
    try {
      const isGenuine = crypto.verify(key, ALGORITHM, utf8(message), mac);
      return isGenuine ? authentic(key) : rejected("bad-signature");
    } catch (error) {
      return rejected(error === "malformed-signature" ? error : "unknown-key");
    }
  }),
};

// True if the field's line can be written by no other fields: else the signature of two would be that of
// one whose name holds the first.
function isOneLine({ name, value }) {
  return !/[=\n]/.test(name) && !value.includes("\n");
}

function authentic(key) {
  return { tag: "authentic", val: { key, algorithm: ALGORITHM, signedAt: null, replayToken: null } };
}

function rejected(reason) {
  return { tag: "rejected", val: reason };
}
