/* The header for policies in C: no library, no libc.
 *
 * Define one of RAMPART_FEE, RAMPART_METHOD_ORDER and RAMPART_SIGNATURE, include this file in one
 * source file, and write there:
 *   - `const rp_about rp_policy = {...}`, the policy's description of itself
 *   - `rp_price`, `rp_rank` or `rp_judge`, the decision
 *   - `rp_validate`, if RAMPART_VALIDATES is defined too
 *
 * The structures are laid out as the component model passes values in memory, so nothing is copied
 * on the way in or out. `rampart policy build` compiles it and makes the component:
 *   clang --target=wasm32-unknown-unknown -ffreestanding -nostdlib -mbulk-memory -O2 ...
 *
 * Every call gets fresh memory, which ends with it, so nothing is ever freed. The contract, field by
 * field, is in Rampart's `wit/`, version 0.1.
 */
#ifndef RAMPART_POLICY_H
#define RAMPART_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(RAMPART_FEE) + defined(RAMPART_METHOD_ORDER) + defined(RAMPART_SIGNATURE) != 1
#error "define one of RAMPART_FEE, RAMPART_METHOD_ORDER and RAMPART_SIGNATURE before the include"
#endif

#define RP_EXPORT(name) __attribute__((export_name(name)))
#define RP_IMPORT(module, name) __attribute__((import_module(module), import_name(name)))
#define RP_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)

/* ---- Texts and lists ------------------------------------------------------------------------ */

/* UTF-8, or bytes; not terminated by a zero. */
typedef struct {
    const char *at;
    size_t length;
} rp_text;

/* A literal, in an initialiser or an expression. */
#define RP(literal) ((rp_text){(literal), sizeof(literal) - 1})
/* The elements of an array and their number, for an initialiser. */
#define RP_LIST(array) {(array), sizeof(array) / sizeof((array)[0])}

typedef struct {
    const rp_text *at;
    size_t length;
} rp_texts;

typedef struct {
    bool is_set;
    rp_text text;
} rp_optional_text;

typedef struct {
    bool is_set;
    int32_t number;
} rp_optional_number;

typedef struct {
    bool is_set;
    uint32_t seconds;
} rp_optional_seconds;

RP_SIZE(rp_text, 8);
RP_SIZE(rp_optional_text, 12);
RP_SIZE(rp_optional_number, 8);

/* ---- Input of every call -------------------------------------------------------------------- */

/* The type of a setting. */
enum { RP_TEXT, RP_FLAG, RP_INTEGER, RP_DECIMAL, RP_TEXTS };

/* A setting for the operator. */
typedef struct {
    rp_text key;
    uint8_t type;
    bool required;
    rp_text help;
} rp_setting;

/* A policy's description of itself. */
typedef struct {
    rp_text name;    /* `partner/name` */
    rp_text version; /* semantic version of the policy */
    rp_text summary; /* one sentence */
    struct {
        const rp_setting *at;
        size_t length;
    } settings;
    rp_texts keys; /* names of the keys it expects to be bound */
} rp_about;

/* A setting's value; the host has checked its type against `rp_policy`. */
typedef struct {
    rp_text key;
    uint8_t type;
    union {
        rp_text text; /* of RP_DECIMAL too */
        bool flag;
        int32_t integer;
        rp_texts texts;
    };
} rp_entry;

typedef struct {
    const rp_entry *at;
    size_t length;
} rp_config;

typedef struct {
    rp_text key;
    rp_text value;
} rp_attribute;

typedef struct {
    rp_text partner;
    rp_text request_id;
    uint32_t now; /* seconds since 1970 */
    bool rehearsal;
    struct {
        const rp_attribute *at;
        size_t length;
    } attributes;
} rp_context;

typedef struct {
    rp_text amount; /* decimal */
    rp_text currency;
} rp_money;

typedef struct {
    bool is_set;
    rp_money money;
} rp_optional_money;

/* Seen from the end user. */
enum { RP_BUY, RP_SELL };

/* Errors of a policy; a refusal is output, not an error. */
enum { RP_INVALID_CONFIG, RP_INVALID_INPUT, RP_UNSUPPORTED, RP_INTERNAL };

typedef struct {
    uint8_t reason;
    rp_text message;
} rp_failure;

RP_SIZE(rp_setting, 20);
RP_SIZE(rp_entry, 20);
RP_SIZE(rp_context, 32);
RP_SIZE(rp_optional_money, 20);
RP_SIZE(rp_failure, 12);

extern const rp_about rp_policy;

/* ---- Memory --------------------------------------------------------------------------------- */

#define RP_PAGE 65536u

extern char __heap_base;
static uintptr_t rp_memory_next;
static uint64_t rp_memory_end;

/* Memory for the rest of the call. Traps when the host grants no more. */
static inline void *rp_allocate(size_t size, size_t align) {
    if (rp_memory_next == 0) {
        rp_memory_next = (uintptr_t)&__heap_base;
        rp_memory_end = (uint64_t)__builtin_wasm_memory_size(0) * RP_PAGE;
    }
    uint64_t start = ((uint64_t)rp_memory_next + align - 1) & ~(uint64_t)(align - 1);
    uint64_t end = start + size;
    if (end > rp_memory_end) {
        uint64_t pages = (end - rp_memory_end + RP_PAGE - 1) / RP_PAGE;
        if (pages > UINT16_MAX || __builtin_wasm_memory_grow(0, pages) == SIZE_MAX) {
            __builtin_trap();
        }
        rp_memory_end += pages * RP_PAGE;
    }
    rp_memory_next = (uintptr_t)end;
    return (void *)(uintptr_t)start;
}

#define RP_NEW(type, count) ((type *)rp_allocate(sizeof(type) * (count), _Alignof(type)))

RP_EXPORT("cabi_realloc")
void *rp_cabi_realloc(void *old, size_t old_size, size_t align, size_t size) {
    if (size <= old_size) {
        return old;
    }
    char *block = rp_allocate(size, align);
    if (old_size > 0) {
        __builtin_memcpy(block, old, old_size);
    }
    return block;
}

/* ---- Texts ---------------------------------------------------------------------------------- */

static inline bool rp_equal(rp_text a, rp_text b) {
    if (a.length != b.length) {
        return false;
    }
    for (size_t i = 0; i < a.length; i++) {
        if (a.at[i] != b.at[i]) {
            return false;
        }
    }
    return true;
}

static inline bool rp_contains(rp_texts list, rp_text text) {
    for (size_t i = 0; i < list.length; i++) {
        if (rp_equal(list.at[i], text)) {
            return true;
        }
    }
    return false;
}

/* A text that grows; start with `rp_builder b = {0}`. */
typedef struct {
    char *at;
    size_t length;
    size_t room;
} rp_builder;

static inline void rp_append(rp_builder *builder, rp_text text) {
    size_t length = builder->length + text.length;
    if (length > builder->room) {
        size_t room = length * 2 + 64;
        builder->at = rp_cabi_realloc(builder->at, builder->length, 1, room);
        builder->room = room;
    }
    __builtin_memcpy(builder->at + builder->length, text.at, text.length);
    builder->length = length;
}

static inline void rp_append_number(rp_builder *builder, int64_t number) {
    char digits[20];
    size_t start = sizeof digits;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do {
        digits[--start] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0) {
        digits[--start] = '-';
    }
    rp_append(builder, (rp_text){digits + start, sizeof digits - start});
}

static inline rp_text rp_built(const rp_builder *builder) {
    return (rp_text){builder->at, builder->length};
}

static inline int rp_base64_digit(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    if (c == '+') return 62;
    return c == '/' ? 63 : -1;
}

/* Reads base64 with padding (RFC 4648, section 4), each value in canonical form only. */
static inline bool rp_base64_decode(rp_text text, rp_text *bytes) {
    size_t digits = text.length;
    while (digits > 0 && text.at[digits - 1] == '=' && text.length - digits < 2) {
        digits--;
    }
    if (text.length % 4 != 0) {
        return false;
    }
    char *out = RP_NEW(char, digits * 3 / 4 + 1);
    size_t length = 0;
    uint32_t bits = 0, count = 0;
    for (size_t i = 0; i < digits; i++) {
        int digit = rp_base64_digit(text.at[i]);
        if (digit < 0) {
            return false;
        }
        bits = bits << 6 | (uint32_t)digit;
        count += 6;
        if (count >= 8) {
            count -= 8;
            out[length++] = (char)(bits >> count);
            bits &= (1u << count) - 1;
        }
    }
    *bytes = (rp_text){out, length};
    return bits == 0;
}

/* ---- Decimals ------------------------------------------------------------------------------- */

typedef struct {
    bool negative;
    rp_text whole;    /* without leading zeros */
    rp_text fraction; /* without trailing zeros */
} rp_decimal;

static inline rp_decimal rp_decimal_of(rp_text text) {
    rp_decimal parts = {text.length > 0 && text.at[0] == '-', {0, 0}, {0, 0}};
    size_t i = parts.negative ? 1 : 0, end = text.length;
    while (i < end && text.at[i] == '0') {
        i++;
    }
    parts.whole.at = text.at + i;
    while (i < end && text.at[i] != '.') {
        i++, parts.whole.length++;
    }
    if (i < end) {
        while (text.at[end - 1] == '0') {
            end--;
        }
        parts.fraction = (rp_text){text.at + i + 1, end - i - 1};
    }
    return parts;
}

static inline int rp_compare_bytes(rp_text a, rp_text b) {
    size_t least = a.length < b.length ? a.length : b.length;
    for (size_t i = 0; i < least; i++) {
        if (a.at[i] != b.at[i]) {
            return a.at[i] < b.at[i] ? -1 : 1;
        }
    }
    return (a.length > b.length) - (a.length < b.length);
}

/* Compares two decimals of the contract exactly: below, at or above zero as `a` is to `b`. */
static inline int rp_compare(rp_text a, rp_text b) {
    rp_decimal x = rp_decimal_of(a), y = rp_decimal_of(b);
    bool zero = x.whole.length + x.fraction.length + y.whole.length + y.fraction.length == 0;
    if (zero) {
        return 0;
    }
    if (x.negative != y.negative) {
        return x.negative ? -1 : 1;
    }
    int size = (x.whole.length > y.whole.length) - (x.whole.length < y.whole.length);
    size = size ? size : rp_compare_bytes(x.whole, y.whole);
    size = size ? size : rp_compare_bytes(x.fraction, y.fraction);
    return x.negative ? -size : size;
}

/* ---- Settings ------------------------------------------------------------------------------- */

static inline const rp_entry *rp_get(const rp_config *config, rp_text key) {
    for (size_t i = 0; i < config->length; i++) {
        if (rp_equal(config->at[i].key, key)) {
            return &config->at[i];
        }
    }
    return 0;
}

/* Of a text or a decimal. */
static inline rp_text rp_text_or(const rp_config *config, rp_text key, rp_text otherwise) {
    const rp_entry *entry = rp_get(config, key);
    return entry ? entry->text : otherwise;
}

static inline int32_t rp_integer_or(const rp_config *config, rp_text key, int32_t otherwise) {
    const rp_entry *entry = rp_get(config, key);
    return entry ? entry->integer : otherwise;
}

static inline bool rp_flag_or(const rp_config *config, rp_text key, bool otherwise) {
    const rp_entry *entry = rp_get(config, key);
    return entry ? entry->flag : otherwise;
}

/* Empty when it is not set. */
static inline rp_texts rp_texts_of(const rp_config *config, rp_text key) {
    const rp_entry *entry = rp_get(config, key);
    return entry ? entry->texts : (rp_texts){0, 0};
}

/* ---- Log: at most 16 lines and 4 KiB per call ----------------------------------------------- */

enum { RP_DEBUG, RP_INFO, RP_WARN };

RP_IMPORT("rampart:policy/log@0.1.0", "write")
void rp_log_write(uint32_t level, const char *at, size_t length);

static inline void rp_log(uint32_t level, rp_text message) {
    rp_log_write(level, message.at, message.length);
}

/* ---- `meta`: the policy's description of itself --------------------------------------------- */

/* A setting that cannot be used, and the reason. */
typedef struct {
    rp_text key;
    rp_text problem;
} rp_problem;

typedef struct {
    bool refused;
    struct {
        const rp_problem *at;
        size_t length;
    } problems;
} rp_validation;

typedef struct {
    rp_text name, version, summary;
    struct {
        const uint8_t *at;
        size_t length;
    } kinds;
    struct {
        const rp_setting *at;
        size_t length;
    } settings;
    rp_texts keys;
} rp_info;

RP_SIZE(rp_validation, 12);
RP_SIZE(rp_info, 48);

#ifdef RAMPART_VALIDATES
/* Checks settings beyond their type: true if valid, else writes the first problem. */
bool rp_validate(const rp_config *config, rp_problem *problem);
#endif

#if defined(RAMPART_SIGNATURE)
static const uint8_t rp_kind[] = {0};
#elif defined(RAMPART_FEE)
static const uint8_t rp_kind[] = {1};
#else
static const uint8_t rp_kind[] = {2};
#endif

RP_EXPORT("rampart:policy/meta@0.1.0#describe")
const rp_info *rp_describe(void) {
    static rp_info info;
    info.name = rp_policy.name;
    info.version = rp_policy.version;
    info.summary = rp_policy.summary;
    info.kinds.at = rp_kind;
    info.kinds.length = 1;
    info.settings.at = rp_policy.settings.at;
    info.settings.length = rp_policy.settings.length;
    info.keys = rp_policy.keys;
    return &info;
}

RP_EXPORT("rampart:policy/meta@0.1.0#validate-config")
const rp_validation *rp_validate_config(const rp_entry *at, size_t length) {
    static rp_validation validation;
#ifdef RAMPART_VALIDATES
    static rp_problem problem;
    rp_config config = {at, length};
    validation.refused = !rp_validate(&config, &problem);
    validation.problems.at = &problem;
    validation.problems.length = 1;
#else
    (void)at, (void)length;
#endif
    return &validation;
}

/* ---- Fees ----------------------------------------------------------------------------------- */

#ifdef RAMPART_FEE

enum { RP_QUOTE, RP_ORDER };

typedef struct {
    uint8_t stage;
    uint8_t side;
    rp_money pay; /* what the user pays in */
    rp_text receive_currency;
    rp_text mid_rate; /* receive per one unit of pay, before any spread */
    rp_text payment_method;
    rp_text country;
    rp_text user_tier;
    rp_optional_text volume_30d; /* of the last 30 days, in the pay currency */
    rp_optional_text promo_code;
} rp_fee_request;

enum { RP_FLAT, RP_RATE, RP_BOUNDED };

/* In the pay currency; rates are parts per million. */
typedef struct {
    uint8_t type;
    union {
        rp_text flat;
        int32_t rate;
        struct {
            int32_t rate;
            rp_optional_text at_least;
            rp_optional_text at_most;
        } bounded;
    };
} rp_charge;

enum { RP_PARTNER, RP_PAYMENT_METHOD };

typedef struct {
    uint8_t kind;
    rp_text code; /* `[a-z0-9-]{1,32}` */
    rp_charge charge;
} rp_fee_line;

typedef struct {
    struct {
        const rp_fee_line *at;
        size_t length;
    } lines;
    int32_t spread; /* against the user; negative is a subsidy */
    rp_text rule;   /* `[a-z0-9-]{0,64}` */
} rp_fee_schedule;

typedef struct {
    bool failed;
    union {
        rp_fee_schedule schedule;
        rp_failure failure;
    };
} rp_fee_answer;

typedef struct {
    rp_context context;
    rp_config config;
    rp_fee_request request;
} rp_fee_call;

RP_SIZE(rp_fee_request, 84);
RP_SIZE(rp_fee_line, 44);
RP_SIZE(rp_fee_answer, 24);

/* States the fees of one quote or order; the host does the sums. */
rp_fee_answer rp_price(const rp_context *context, const rp_config *config,
                       const rp_fee_request *request);

static inline rp_charge rp_flat(rp_text amount) {
    return (rp_charge){.type = RP_FLAT, .flat = amount};
}

static inline rp_charge rp_rate(int32_t ppm) {
    return (rp_charge){.type = RP_RATE, .rate = ppm};
}

/* A line of the partner's own fee. */
static inline rp_fee_line rp_partner_fee(rp_text code, rp_charge charge) {
    return (rp_fee_line){RP_PARTNER, code, charge};
}

/* A line for the cost of the payment method. */
static inline rp_fee_line rp_payment_method_fee(rp_text code, rp_charge charge) {
    return (rp_fee_line){RP_PAYMENT_METHOD, code, charge};
}

/* The answer; the lines are copied. */
static inline rp_fee_answer rp_fees(const rp_fee_line *lines, size_t count, int32_t spread,
                                    rp_text rule) {
    rp_fee_line *copy = RP_NEW(rp_fee_line, count);
    __builtin_memcpy(copy, lines, count * sizeof(rp_fee_line));
    rp_fee_answer answer = {.failed = false};
    answer.schedule.lines.at = copy;
    answer.schedule.lines.length = count;
    answer.schedule.spread = spread;
    answer.schedule.rule = rule;
    return answer;
}

static inline rp_fee_answer rp_no_fees(uint8_t reason, rp_text message) {
    return (rp_fee_answer){.failed = true, .failure = {reason, message}};
}

RP_EXPORT("rampart:policy/fee@0.1.0#price")
const rp_fee_answer *rp_exported_price(const rp_fee_call *call) {
    static rp_fee_answer answer;
    answer = rp_price(&call->context, &call->config, &call->request);
    return &answer;
}

#endif

/* ---- The order of payment methods ----------------------------------------------------------- */

#ifdef RAMPART_METHOD_ORDER

enum { RP_CARD, RP_BANK_TRANSFER, RP_WALLET, RP_INSTANT_TRANSFER, RP_CASH, RP_OTHER };

typedef struct {
    rp_text id;
    uint8_t kind;
    rp_texts currencies;
    rp_optional_number success_rate; /* parts per million */
    rp_optional_number cost;         /* parts per million */
    rp_optional_seconds settles_in;
} rp_method;

typedef struct {
    rp_text country;
    rp_text tier;
    bool returning;
    rp_optional_text last_used;
    rp_text channel; /* `ios`, `android`, `web` */
} rp_user;

typedef struct {
    uint8_t side;
    rp_optional_money amount;
    rp_user user;
    struct {
        const rp_method *at;
        size_t length;
    } methods; /* at most 64 */
} rp_order_request;

typedef struct {
    rp_text id;
    rp_optional_text badge; /* `recommended` or `last-used`; any other is dropped */
} rp_placement;

/* An id in neither list follows in the host's own order. */
typedef struct {
    struct {
        const rp_placement *at;
        size_t length;
    } shown; /* best first */
    rp_texts hidden;
    rp_text rule; /* any text, of which one line of 64 bytes is kept */
} rp_ranking;

typedef struct {
    bool failed;
    union {
        rp_ranking ranking;
        rp_failure failure;
    };
} rp_order_answer;

typedef struct {
    rp_context context;
    rp_config config;
    rp_order_request request;
} rp_order_call;

RP_SIZE(rp_method, 44);
RP_SIZE(rp_order_request, 72);
RP_SIZE(rp_placement, 20);
RP_SIZE(rp_order_answer, 28);

/* The order for one user. */
rp_order_answer rp_rank(const rp_context *context, const rp_config *config,
                        const rp_order_request *request);

/* The answer; `shown` must outlive the call: take it from `RP_NEW`. */
static inline rp_order_answer rp_ranked(const rp_placement *shown, size_t count, rp_texts hidden,
                                        rp_text rule) {
    rp_order_answer answer = {.failed = false};
    answer.ranking.shown.at = shown;
    answer.ranking.shown.length = count;
    answer.ranking.hidden = hidden;
    answer.ranking.rule = rule;
    return answer;
}

static inline rp_order_answer rp_no_order(uint8_t reason, rp_text message) {
    return (rp_order_answer){.failed = true, .failure = {reason, message}};
}

RP_EXPORT("rampart:policy/method-order@0.1.0#rank")
const rp_order_answer *rp_exported_rank(const rp_order_call *call) {
    static rp_order_answer answer;
    answer = rp_rank(&call->context, &call->config, &call->request);
    return &answer;
}

#endif

/* ---- Signatures ----------------------------------------------------------------------------- */

#ifdef RAMPART_SIGNATURE

enum { RP_OFFER, RP_ONBOARDING };

enum {
    RP_HMAC_SHA256,
    RP_HMAC_SHA512,
    RP_ED25519,
    RP_RSA_PKCS1_SHA256,
    RP_RSA_PSS_SHA256,
    RP_ECDSA_P256_SHA256,
};

typedef struct {
    rp_text name;
    rp_text value;
} rp_field;

typedef struct {
    const rp_field *at;
    size_t length;
} rp_fields;

typedef struct {
    uint8_t purpose;
    rp_fields fields; /* sorted by name; without the signature itself */
    rp_optional_text claimed;
    rp_text method;
    rp_text path;
    rp_text query;
    rp_fields headers;
    rp_text body;
} rp_payload;

enum {
    RP_MISSING_SIGNATURE,
    RP_MALFORMED_SIGNATURE,
    RP_NO_SUCH_KEY,
    RP_BAD_SIGNATURE,
    RP_STALE,
    RP_NOT_COVERED,
};

typedef struct {
    rp_text key;
    uint8_t algorithm;
    rp_optional_seconds signed_at;
    rp_optional_text replay_token;
} rp_signer;

typedef struct {
    bool failed;
    union {
        struct {
            bool rejected;
            union {
                rp_signer signer;
                uint8_t reason;
            };
        } verdict;
        rp_failure failure;
    };
} rp_verdict_answer;

typedef struct {
    rp_context context;
    rp_config config;
    rp_payload payload;
} rp_payload_call;

RP_SIZE(rp_payload, 64);
RP_SIZE(rp_signer, 32);
RP_SIZE(rp_verdict_answer, 40);

/* The verdict. The host accepts an authentic one only for a key with which `rp_verify` succeeded. */
rp_verdict_answer rp_judge(const rp_context *context, const rp_config *config,
                           const rp_payload *payload);

static inline rp_verdict_answer rp_authentic(rp_signer signer) {
    rp_verdict_answer answer = {.failed = false};
    answer.verdict.rejected = false;
    answer.verdict.signer = signer;
    return answer;
}

static inline rp_verdict_answer rp_rejected(uint8_t reason) {
    rp_verdict_answer answer = {.failed = false};
    answer.verdict.rejected = true;
    answer.verdict.reason = reason;
    return answer;
}

static inline rp_verdict_answer rp_no_verdict(uint8_t reason, rp_text message) {
    return (rp_verdict_answer){.failed = true, .failure = {reason, message}};
}

/* Result of a signature check by the host. */
typedef enum {
    RP_GENUINE,
    RP_FORGED,
    RP_UNKNOWN_KEY,
    RP_WRONG_ALGORITHM,
    RP_MALFORMED,
    RP_KEY_NOT_CURRENT,
} rp_finding;

typedef struct {
    bool failed;
    uint8_t value; /* a flag, or the error */
} rp_verified;

RP_IMPORT("rampart:policy/crypto@0.1.0", "verify")
void rp_crypto_verify(const char *key, size_t key_length, uint32_t algorithm, const char *message,
                      size_t message_length, const char *signature, size_t signature_length,
                      rp_verified *verified);

RP_IMPORT("rampart:policy/crypto@0.1.0", "digest")
void rp_crypto_digest(uint32_t algorithm, const char *data, size_t length, rp_text *digest);

/* Checks a signature with the key of this name, which stays in the host. */
static inline rp_finding rp_verify(rp_text key, uint8_t algorithm, rp_text message,
                                   rp_text signature) {
    rp_verified verified;
    rp_crypto_verify(key.at, key.length, algorithm, message.at, message.length, signature.at,
                     signature.length, &verified);
    if (verified.failed) {
        return (rp_finding)(RP_UNKNOWN_KEY + verified.value);
    }
    return verified.value ? RP_GENUINE : RP_FORGED;
}

enum { RP_SHA256, RP_SHA512 };

static inline rp_text rp_digest(uint8_t algorithm, rp_text data) {
    rp_text digest;
    rp_crypto_digest(algorithm, data.at, data.length, &digest);
    return digest;
}

RP_EXPORT("rampart:policy/signature@0.1.0#verify")
const rp_verdict_answer *rp_exported_verify(const rp_payload_call *call) {
    static rp_verdict_answer answer;
    answer = rp_judge(&call->context, &call->config, &call->payload);
    return &answer;
}

#endif
#endif
