/* A partner fee that is lower for users with a high volume over the last 30 days.
 *
 * - `rate`: for everybody else, in parts per million
 * - `from`: the volume from which the lower rate applies, in the pay currency
 * - `lower-rate`: that rate */

#define RAMPART_FEE
#define RAMPART_VALIDATES
#include "rampart_policy.h"

#define DEFAULT_RATE 15000
#define DEFAULT_LOWER_RATE 7500
#define DEFAULT_FROM RP("10000")

static const rp_setting settings[] = {
    {RP("from"), RP_DECIMAL, false, RP("volume of 30 days from which the lower rate applies")},
    {RP("lower-rate"), RP_INTEGER, false, RP("the rate from that volume, in ppm")},
    {RP("rate"), RP_INTEGER, false, RP("the rate below it, in ppm")},
};

const rp_about rp_policy = {
    .name = RP("rampart/volume-fee"),
    .version = RP("1.0.0"),
    .summary = RP("A partner fee that falls with the volume of 30 days."),
    .settings = RP_LIST(settings),
};

bool rp_validate(const rp_config *config, rp_problem *problem) {
    int32_t rate = rp_integer_or(config, RP("rate"), DEFAULT_RATE);
    int32_t lower = rp_integer_or(config, RP("lower-rate"), DEFAULT_LOWER_RATE);
    *problem = (rp_problem){RP("lower-rate"), RP("must not be above `rate`")};
    return lower <= rate;
}

rp_fee_answer rp_price(const rp_context *context, const rp_config *config,
                       const rp_fee_request *request) {
    (void)context;
    rp_text from = rp_text_or(config, RP("from"), DEFAULT_FROM);
    rp_optional_text volume = request->volume_30d;
    bool is_large = volume.is_set && rp_compare(volume.text, from) >= 0;
    int32_t rate = is_large ? rp_integer_or(config, RP("lower-rate"), DEFAULT_LOWER_RATE)
                            : rp_integer_or(config, RP("rate"), DEFAULT_RATE);
    rp_fee_line line = rp_partner_fee(RP("by-volume"), rp_rate(rate));
    return rp_fees(&line, 1, 0, is_large ? RP("large-volume") : RP("usual"));
}
