/* One payment method first, the others in the order of the edge. */

#define RAMPART_METHOD_ORDER
#include "rampart_policy.h"

static const rp_setting settings[] = {
    {RP("first"), RP_TEXT, false, RP("the method to show first; bankTransfer if not set")},
    {RP("hide"), RP_TEXTS, false, RP("methods not to show")},
};

const rp_about rp_policy = {
    .name = RP("example/@name@"),
    .version = RP("1.0.0"),
    .summary = RP("One payment method first, the others in the order of the edge."),
    .settings = RP_LIST(settings),
};

rp_order_answer rp_rank(const rp_context *context, const rp_config *config,
                        const rp_order_request *request) {
    (void)context;
    rp_text first = rp_text_or(config, RP("first"), RP("bankTransfer"));
    rp_texts to_hide = rp_texts_of(config, RP("hide"));
    rp_placement *shown = RP_NEW(rp_placement, 1);
    rp_text *hidden = RP_NEW(rp_text, request->methods.length);
    size_t shown_count = 0, hidden_count = 0;
    for (size_t i = 0; i < request->methods.length; i++) {
        rp_text id = request->methods.at[i].id;
        if (rp_contains(to_hide, id)) {
            hidden[hidden_count++] = id;
        } else if (rp_equal(id, first)) {
            shown[shown_count++] = (rp_placement){id, {true, RP("recommended")}};
        }
    }
    rp_text rule = shown_count > 0 ? RP("preferred-first") : RP("as-given");
    return rp_ranked(shown, shown_count, (rp_texts){hidden, hidden_count}, rule);
}
