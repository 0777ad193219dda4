/* Names its rule after what it was told, for the tests of what the host tells. */

#define RAMPART_FEE
#include "rampart_policy.h"
#include "told.h"

const rp_about rp_policy = {
    .name = RP("rampart/told-fee"),
    .version = RP("1.0.0"),
    .summary = RP("Names its rule after what it was told."),
};

rp_fee_answer rp_price(const rp_context *context, const rp_config *config,
                       const rp_fee_request *request) {
    (void)config;
    text(request->stage == RP_ORDER ? RP("order") : RP("quote"));
    text(request->user_tier), text(request->country);
    optional(request->volume_30d.is_set, request->volume_30d.text);
    optional(request->promo_code.is_set, request->promo_code.text);
    for (size_t i = 0; i < context->attributes.length; i++) {
        text(context->attributes.at[i].value);
    }
    return rp_fees((rp_fee_line[]){{0}}, 0, 0, rp_built(&told));
}
