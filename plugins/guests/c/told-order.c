/* Names its rule after what it was told, for the tests of what the host tells. The first method gets
 * a label that the host does not know. */

#define RAMPART_METHOD_ORDER
#include "rampart_policy.h"
#include "told.h"

const rp_about rp_policy = {
    .name = RP("rampart/told-order"),
    .version = RP("1.0.0"),
    .summary = RP("Names its rule after what it was told."),
};

static void number(bool is_set, int64_t value) {
    rp_builder digits = {0};
    rp_append_number(&digits, value);
    optional(is_set, rp_built(&digits));
}

rp_order_answer rp_rank(const rp_context *context, const rp_config *config,
                        const rp_order_request *request) {
    (void)context, (void)config;
    const rp_user *user = &request->user;
    optional(request->amount.is_set, request->amount.money.amount);
    text(user->country), text(user->tier), text(user->channel);
    optional(user->last_used.is_set, user->last_used.text);
    for (size_t i = 0; i < request->methods.length; i++) {
        const rp_method *method = &request->methods.at[i];
        if (rp_equal(method->id, RP("creditCard"))) {
            number(method->success_rate.is_set, method->success_rate.number);
            number(method->cost.is_set, method->cost.number);
            number(method->settles_in.is_set, method->settles_in.seconds);
        }
    }
    rp_placement *shown = RP_NEW(rp_placement, 1);
    size_t count = request->methods.length > 0 ? 1 : 0;
    if (count > 0) {
        shown[0] = (rp_placement){request->methods.at[0].id, {true, RP("sponsored")}};
    }
    return rp_ranked(shown, count, (rp_texts){0}, rp_built(&told));
}
