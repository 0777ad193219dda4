/* Refuses by what it was told, for the tests of what the host tells: for want of a signature where
 * it sees the header `x-acme-timestamp`, else for a bad one. */

#define RAMPART_SIGNATURE
#include "rampart_policy.h"

const rp_about rp_policy = {
    .name = RP("rampart/told-signature"),
    .version = RP("1.0.0"),
    .summary = RP("Refuses by what it was told."),
};

rp_verdict_answer rp_judge(const rp_context *context, const rp_config *config,
                           const rp_payload *payload) {
    (void)context, (void)config;
    for (size_t i = 0; i < payload->headers.length; i++) {
        if (rp_equal(payload->headers.at[i].name, RP("x-acme-timestamp"))) {
            return rp_rejected(RP_MISSING_SIGNATURE);
        }
    }
    return rp_rejected(RP_BAD_SIGNATURE);
}
