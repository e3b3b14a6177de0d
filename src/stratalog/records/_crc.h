/* CRC-32C (Castagnoli, record batches of magic 2) and CRC-32 (IEEE, message sets of magic 0 and 1).
 *
 * In C, not through a Python package, because a scan checks thousands of batches in one go with
 * the GIL released. The processor's CRC-32C instruction has a latency of three cycles, so three
 * runs of bytes are computed side by side and joined; where there is no such instruction, and for
 * CRC-32, eight tables take eight bytes a step.
 *
 * A CRC is linear: appending n zero bytes multiplies its register by x^(8n) modulo the polynomial.
 * That joins the three runs, and gives the CRC of any range from the CRCs of two prefixes.
 */
#ifndef STRATALOG_CRC_H
#define STRATALOG_CRC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <nmmintrin.h>
#define CRC_HARDWARE 1
#define CRC_TARGET __attribute__((target("sse4.2")))
#define CRC_STEP_8(crc, word) ((uint32_t)_mm_crc32_u64((crc), (word)))
#define CRC_STEP_1(crc, byte) _mm_crc32_u8((crc), (byte))
#define CRC_AVAILABLE() __builtin_cpu_supports("sse4.2")
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define CRC_HARDWARE 1
#define CRC_TARGET
#define CRC_STEP_8(crc, word) __crc32cd((crc), (word))
#define CRC_STEP_1(crc, byte) __crc32cb((crc), (byte))
#define CRC_AVAILABLE() 1
#endif

enum { CRC_CASTAGNOLI = 0, CRC_IEEE = 1 };
enum { CRC_LONG_RUN = 2048, CRC_SHORT_RUN = 256 };

static const uint32_t crc_polynomial[2] = {0x82F63B78u, 0xEDB88320u};
static uint32_t crc_table[2][8][256];
static uint32_t crc_zeros[2][16][16]; /* [k][d]: x^8 to the power d * 16^k */
static uint32_t crc_skip_long[4][256], crc_skip_short[4][256];
static int crc_has_instruction;

static uint32_t crc_multiply(int kind, uint32_t a, uint32_t b) {
    uint32_t product = 0;
    int bit;
    for (bit = 31; bit >= 0; bit--) { /* without branches: the bits are as good as random */
        product ^= b & (0u - ((a >> bit) & 1));
        b = (b >> 1) ^ (crc_polynomial[kind] & (0u - (b & 1)));
    }
    return product;
}

/* What a register becomes after zero_count zero bytes. */
static uint32_t crc_shift(int kind, uint32_t crc, uint64_t zero_count) {
    int k;
    for (k = 0; zero_count; zero_count >>= 4, k++)
        if (zero_count & 15) crc = crc_multiply(kind, crc_zeros[kind][k][zero_count & 15], crc);
    return crc;
}

static void crc_fill_skip(uint32_t skip[4][256], uint64_t zero_count) {
    uint32_t lane, byte;
    for (lane = 0; lane < 4; lane++)
        for (byte = 0; byte < 256; byte++)
            skip[lane][byte] = crc_shift(CRC_CASTAGNOLI, byte << (8 * lane), zero_count);
}

static void crc_initialize(void) {
    int kind, k, bit;
    uint32_t n;
    for (kind = 0; kind < 2; kind++) {
        for (n = 0; n < 256; n++) {
            uint32_t crc = n;
            for (bit = 0; bit < 8; bit++)
                crc = (crc & 1) ? (crc >> 1) ^ crc_polynomial[kind] : crc >> 1;
            crc_table[kind][0][n] = crc;
        }
        for (n = 0; n < 256; n++)
            for (k = 1; k < 8; k++) {
                uint32_t before = crc_table[kind][k - 1][n];
                crc_table[kind][k][n] = (before >> 8) ^ crc_table[kind][0][before & 0xFF];
            }
        uint32_t power = 1u << 23; /* x^8 */
        for (k = 0; k < 16; k++) {
            crc_zeros[kind][k][0] = 1u << 31; /* 1 */
            for (n = 1; n < 16; n++)
                crc_zeros[kind][k][n] = crc_multiply(kind, crc_zeros[kind][k][n - 1], power);
            power = crc_multiply(kind, crc_zeros[kind][k][15], power);
        }
    }
    crc_fill_skip(crc_skip_long, CRC_LONG_RUN);
    crc_fill_skip(crc_skip_short, CRC_SHORT_RUN);
#ifdef CRC_HARDWARE
    crc_has_instruction = CRC_AVAILABLE();
#endif
}

static uint32_t crc_by_table(int kind, uint32_t crc, const uint8_t *data, size_t size) {
    uint32_t(*table)[256] = crc_table[kind];
    for (; size >= 8; data += 8, size -= 8) {
        uint32_t low = crc ^ ((uint32_t)data[0] | (uint32_t)data[1] << 8 |
                              (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24);
        crc = table[7][low & 0xFF] ^ table[6][(low >> 8) & 0xFF] ^ table[5][(low >> 16) & 0xFF] ^
              table[4][low >> 24] ^ table[3][data[4]] ^ table[2][data[5]] ^ table[1][data[6]] ^
              table[0][data[7]];
    }
    for (; size; data++, size--) crc = (crc >> 8) ^ table[0][(crc ^ *data) & 0xFF];
    return crc;
}

#ifdef CRC_HARDWARE
static inline uint64_t crc_load(const uint8_t *data) {
    uint64_t word;
    memcpy(&word, data, 8);
    return word;
}

static inline uint32_t crc_skip(uint32_t skip[4][256], uint32_t crc) {
    return skip[0][crc & 0xFF] ^ skip[1][(crc >> 8) & 0xFF] ^ skip[2][(crc >> 16) & 0xFF] ^
           skip[3][crc >> 24];
}

CRC_TARGET static const uint8_t *crc_three_runs(uint32_t *crc, const uint8_t *data, size_t *size,
                                                size_t run, uint32_t skip[4][256]) {
    while (*size >= 3 * run) {
        uint32_t a = *crc, b = 0, c = 0;
        const uint8_t *end = data + run;
        for (; data < end; data += 8) {
            a = CRC_STEP_8(a, crc_load(data));
            b = CRC_STEP_8(b, crc_load(data + run));
            c = CRC_STEP_8(c, crc_load(data + 2 * run));
        }
        *crc = crc_skip(skip, crc_skip(skip, a) ^ b) ^ c;
        data += 2 * run;
        *size -= 3 * run;
    }
    return data;
}

CRC_TARGET static uint32_t crc_by_instruction(uint32_t crc, const uint8_t *data, size_t size) {
    data = crc_three_runs(&crc, data, &size, CRC_LONG_RUN, crc_skip_long);
    data = crc_three_runs(&crc, data, &size, CRC_SHORT_RUN, crc_skip_short);
    for (; size >= 8; data += 8, size -= 8) crc = CRC_STEP_8(crc, crc_load(data));
    for (; size; data++, size--) crc = CRC_STEP_1(crc, *data);
    return crc;
}
#endif

/* Continue a finished CRC (0 to begin) with more bytes; the result is a finished CRC again. */
static uint32_t crc_extend(int kind, uint32_t crc, const uint8_t *data, size_t size) {
    crc = ~crc;
#ifdef CRC_HARDWARE
    if (kind == CRC_CASTAGNOLI && crc_has_instruction) return ~crc_by_instruction(crc, data, size);
#endif
    return ~crc_by_table(kind, crc, data, size);
}

/* The CRC of the bytes that follow a prefix, from the CRC of the prefix and of the whole. */
static uint32_t crc_of_suffix(int kind, uint32_t prefix, uint32_t whole, uint64_t suffix_size) {
    return whole ^ crc_shift(kind, prefix, suffix_size);
}

#endif
