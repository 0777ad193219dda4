/* Echoes every field of its input, for the tests of the header. */

#define RAMPART_METHOD_ORDER
#include "rampart_policy.h"
#include "mirror.h"

const rp_about rp_policy = {
    .name = RP("rampart/mirror-order"),
    .version = RP("1.2.3"),
    .summary = RP("Says back what it is given."),
};

rp_order_answer rp_rank(const rp_context *context, const rp_config *config,
                        const rp_order_request *request) {
    (void)context, (void)config;
    const rp_user *user = &request->user;
    number(request->side), number(request->amount.is_set);
    text(request->amount.money.amount), text(request->amount.money.currency);
    text(user->country), text(user->tier), number(user->returning);
    number(user->last_used.is_set), text(user->last_used.text), text(user->channel);
    for (size_t i = 0; i < request->methods.length; i++) {
        const rp_method *method = &request->methods.at[i];
        text(method->id), number(method->kind);
        for (size_t j = 0; j < method->currencies.length; j++) {
            text(method->currencies.at[j]);
        }
        number(method->success_rate.is_set), number(method->success_rate.number);
        number(method->cost.is_set), number(method->cost.number);
        number(method->settles_in.is_set), number(method->settles_in.seconds);
    }
    rp_log(RP_INFO, rp_built(&line));
    if (request->methods.length < 2) {
        return rp_no_order(RP_INVALID_INPUT, RP("fewer than two methods"));
    }
    rp_placement *shown = RP_NEW(rp_placement, 1);
    rp_text *hidden = RP_NEW(rp_text, 1);
    shown[0] = (rp_placement){request->methods.at[1].id, {true, RP("last-used")}};
    hidden[0] = request->methods.at[0].id;
    return rp_ranked(shown, 1, (rp_texts){hidden, 1}, RP("mirrored"));
}
