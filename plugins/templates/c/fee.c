/* A partner fee of one rate, with countries that pay none. */

#define RAMPART_FEE
#include "rampart_policy.h"

/* 1.25 %, in parts per million. */
#define DEFAULT_RATE 12500

static const rp_setting settings[] = {
    {RP("free-countries"), RP_TEXTS, false, RP("countries that pay nothing, as ISO codes")},
    {RP("rate"), RP_INTEGER, false, RP("the fee, in parts per million of the amount")},
};

const rp_about rp_policy = {
    .name = RP("example/@name@"),
    .version = RP("1.0.0"),
    .summary = RP("A partner fee of one rate, with countries that pay none."),
    .settings = RP_LIST(settings),
};

rp_fee_answer rp_price(const rp_context *context, const rp_config *config,
                       const rp_fee_request *request) {
    (void)context;
    rp_texts free_countries = rp_texts_of(config, RP("free-countries"));
    bool is_free = rp_contains(free_countries, request->country);
    int32_t rate = is_free ? 0 : rp_integer_or(config, RP("rate"), DEFAULT_RATE);
    rp_fee_line line = rp_partner_fee(RP("flat-rate"), rp_rate(rate));
    return rp_fees(&line, 1, 0, is_free ? RP("free-country") : RP("everyone"));
}
