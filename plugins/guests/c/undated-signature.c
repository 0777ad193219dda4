/* Claims a replay token and no signing time, for the tests of what the host remembers: the signature
 * is of one text, and its own token. */

#define RAMPART_SIGNATURE
#include "rampart_policy.h"

const rp_about rp_policy = {
    .name = RP("rampart/undated-signature"),
    .version = RP("1.0.0"),
    .summary = RP("Claims no signing time."),
};

rp_verdict_answer rp_judge(const rp_context *context, const rp_config *config,
                           const rp_payload *payload) {
    (void)context, (void)config;
    rp_text key = RP("partner-ed25519"), signature;
    if (!payload->claimed.is_set) {
        return rp_rejected(RP_MISSING_SIGNATURE);
    }
    if (!rp_base64_decode(payload->claimed.text, &signature)) {
        return rp_rejected(RP_MALFORMED_SIGNATURE);
    }
    if (rp_verify(key, RP_ED25519, RP("undated"), signature) != RP_GENUINE) {
        return rp_rejected(RP_BAD_SIGNATURE);
    }
    return rp_authentic((rp_signer){
        .key = key,
        .algorithm = RP_ED25519,
        .replay_token = payload->claimed,
    });
}
