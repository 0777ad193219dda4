/* A rule's name made of what a policy was told. Include it after the kind's header. */

static rp_builder told;

/* Letters in small, anything else but digits as a hyphen: a rule's name has nothing else. */
static void text(rp_text value) {
    if (told.length > 0) {
        rp_append(&told, RP("-"));
    }
    for (size_t i = 0; i < value.length; i++) {
        char c = value.at[i];
        c = c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
        char is_plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        rp_append(&told, (rp_text){is_plain ? &c : "-", 1});
    }
}

static void optional(bool is_set, rp_text value) {
    text(is_set ? value : RP("none"));
}
