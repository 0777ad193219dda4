/* Echoes every field of its input, for the tests of the header. */

#define RAMPART_SIGNATURE
#include "rampart_policy.h"
#include "mirror.h"

const rp_about rp_policy = {
    .name = RP("rampart/mirror-signature"),
    .version = RP("1.2.3"),
    .summary = RP("Says back what it is given."),
};

static void fields(rp_fields list) {
    for (size_t i = 0; i < list.length; i++) {
        text(list.at[i].name), text(list.at[i].value);
    }
}

rp_verdict_answer rp_judge(const rp_context *context, const rp_config *config,
                           const rp_payload *payload) {
    (void)config;
    number(payload->purpose), fields(payload->fields);
    number(payload->claimed.is_set), text(payload->claimed.text);
    text(payload->method), text(payload->path), text(payload->query);
    fields(payload->headers), text(payload->body);
    number(rp_digest(RP_SHA256, payload->body).length);
    number(rp_digest(RP_SHA512, payload->body).length);
    number(rp_verify(RP("nobody's"), RP_ED25519, payload->body, payload->claimed.text));
    number(rp_verify(RP("ours"), RP_ED25519, payload->body, payload->claimed.text));
    number(rp_verify(RP("ours"), RP_HMAC_SHA512, payload->body, payload->claimed.text));
    rp_text mac;
    if (!rp_base64_decode(payload->claimed.text, &mac)) {
        return rp_no_verdict(RP_INTERNAL, RP("not base64"));
    }
    rp_finding finding = rp_verify(RP("ours"), RP_HMAC_SHA512, payload->body, mac);
    number(finding);
    rp_log(RP_DEBUG, rp_built(&line));
    if (finding != RP_GENUINE) {
        return rp_rejected(RP_NOT_COVERED);
    }
    return rp_authentic((rp_signer){
        .key = RP("ours"),
        .algorithm = RP_HMAC_SHA512,
        .signed_at = {true, context->now - 5},
        .replay_token = {true, payload->body},
    });
}
