/* Echoes every field of its input, for the tests of the header. */

#define RAMPART_FEE
#include "rampart_policy.h"
#include "mirror.h"

static const rp_text keys[] = {RP("one"), RP("two")};

static const rp_setting settings[] = {
    {RP("decimal"), RP_DECIMAL, false, RP("a decimal")},
    {RP("flag"), RP_FLAG, false, RP("a flag")},
    {RP("integer"), RP_INTEGER, true, RP("an integer")},
    {RP("text"), RP_TEXT, false, RP("a text")},
    {RP("texts"), RP_TEXTS, false, RP("texts")},
};

const rp_about rp_policy = {
    .name = RP("rampart/mirror-fee"),
    .version = RP("1.2.3"),
    .summary = RP("Says back what it is given."),
    .settings = RP_LIST(settings),
    .keys = RP_LIST(keys),
};

rp_fee_answer rp_price(const rp_context *context, const rp_config *config,
                       const rp_fee_request *request) {
    text(context->partner), text(context->request_id), number(context->now);
    number(context->rehearsal);
    for (size_t i = 0; i < context->attributes.length; i++) {
        text(context->attributes.at[i].key), text(context->attributes.at[i].value);
    }
    text(rp_text_or(config, RP("text"), RP("no text")));
    text(rp_text_or(config, RP("decimal"), RP("no decimal")));
    number(rp_integer_or(config, RP("integer"), 0));
    number(rp_flag_or(config, RP("flag"), false));
    for (size_t i = 0; i < rp_texts_of(config, RP("texts")).length; i++) {
        text(rp_texts_of(config, RP("texts")).at[i]);
    }
    number(request->stage), number(request->side);
    text(request->pay.amount), text(request->pay.currency), text(request->receive_currency);
    text(request->mid_rate), text(request->payment_method), text(request->country);
    text(request->user_tier);
    number(request->volume_30d.is_set), text(request->volume_30d.text);
    number(request->promo_code.is_set), text(request->promo_code.text);
    rp_log(RP_WARN, rp_built(&line));
    if (rp_equal(request->country, RP("XX"))) {
        return rp_no_fees(RP_UNSUPPORTED, RP("no such country"));
    }
    rp_charge bounded = {.type = RP_BOUNDED,
                         .bounded = {-7, {true, RP("-1.5")}, {true, request->pay.amount}}};
    rp_fee_line lines[] = {
        rp_partner_fee(RP("flat"), rp_flat(RP("0.25"))),
        rp_payment_method_fee(RP("rate"), rp_rate(-2500)),
        rp_partner_fee(RP("bounded"), bounded),
    };
    return rp_fees(lines, 3, -11, RP("mirrored"));
}
