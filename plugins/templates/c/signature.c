/* Offers and onboarding links signed with HMAC-SHA-256.
 *
 * The signed text is every field as `name=value` on a line of its own, sorted by name; `signature`
 * is the base64 of the MAC. The key stays in the host, the policy only names it. */

#define RAMPART_SIGNATURE
#include "rampart_policy.h"

static const rp_text keys[] = {RP("partner-hmac")};

static const rp_setting settings[] = {
    {RP("key"), RP_TEXT, false, RP("the name of the key; partner-hmac if not set")},
};

const rp_about rp_policy = {
    .name = RP("example/@name@"),
    .version = RP("1.0.0"),
    .summary = RP("Offers and onboarding links signed with HMAC-SHA-256."),
    .settings = RP_LIST(settings),
    .keys = RP_LIST(keys),
};

static bool has(rp_text text, char wanted) {
    for (size_t i = 0; i < text.length; i++) {
        if (text.at[i] == wanted) {
            return true;
        }
    }
    return false;
}

/* True if no line of the text can be written by other fields: else the signature of two would be that
 * of one whose name holds the first. */
static bool are_lines(rp_fields fields) {
    for (size_t i = 0; i < fields.length; i++) {
        rp_text name = fields.at[i].name;
        if (has(name, '=') || has(name, '\n') || has(fields.at[i].value, '\n')) {
            return false;
        }
    }
    return true;
}

static rp_text message(const rp_payload *payload) {
    rp_builder text = {0};
    for (size_t i = 0; i < payload->fields.length; i++) {
        rp_append(&text, payload->fields.at[i].name);
        rp_append(&text, RP("="));
        rp_append(&text, payload->fields.at[i].value);
        rp_append(&text, RP("\n"));
    }
    return rp_built(&text);
}

rp_verdict_answer rp_judge(const rp_context *context, const rp_config *config,
                           const rp_payload *payload) {
    (void)context;
    rp_text key = rp_text_or(config, RP("key"), RP("partner-hmac"));
    rp_text mac;
    if (!payload->claimed.is_set) {
        return rp_rejected(RP_MISSING_SIGNATURE);
    }
    if (!rp_base64_decode(payload->claimed.text, &mac)) {
        return rp_rejected(RP_MALFORMED_SIGNATURE);
    }
    if (!are_lines(payload->fields)) {
        return rp_rejected(RP_NOT_COVERED);
    }
    switch (rp_verify(key, RP_HMAC_SHA256, message(payload), mac)) {
    case RP_GENUINE:
        return rp_authentic((rp_signer){.key = key, .algorithm = RP_HMAC_SHA256});
    case RP_FORGED:
        return rp_rejected(RP_BAD_SIGNATURE);
    case RP_MALFORMED:
        return rp_rejected(RP_MALFORMED_SIGNATURE);
    default:
        return rp_rejected(RP_NO_SUCH_KEY);
    }
}
