/* One line of everything that a mirror was given. Include it after the kind's header. */

static rp_builder line;

static void text(rp_text value) {
    rp_append(&line, value);
    rp_append(&line, RP("|"));
}

static void number(int64_t value) {
    rp_append_number(&line, value);
    rp_append(&line, RP("|"));
}
