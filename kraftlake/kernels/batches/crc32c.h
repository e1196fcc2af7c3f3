/* CRC32C of a batch's bytes, without a call into another library for each batch.
 *
 * The processor's own instruction (SSE4.2, or the CRC32 extension of Armv8), looked for once, where it has one: three
 * lanes at a time, as the instruction has a latency of three cycles. Eight bytes at a time by tables elsewhere.
 * Source: Intel, "Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction" (the lanes and their combination).
 */
#ifndef KRAFTLAKE_CRC32C_H
#define KRAFTLAKE_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KRAFTLAKE_LANE 256

static uint32_t kraftlake_by_byte[8][256];
static uint32_t kraftlake_behind_lane[4][256];
static int kraftlake_has_instruction;

static uint64_t kraftlake_word(const unsigned char *p) {
    uint64_t word;
    memcpy(&word, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static uint32_t kraftlake_crc_by_tables(uint32_t crc, const unsigned char *p, size_t size) {
    const uint32_t(*t)[256] = (const uint32_t(*)[256])kraftlake_by_byte;
    for (; size >= 8; p += 8, size -= 8) {
        uint64_t x = crc ^ kraftlake_word(p);
        crc = t[7][x & 255] ^ t[6][x >> 8 & 255] ^ t[5][x >> 16 & 255] ^ t[4][x >> 24 & 255] ^ t[3][x >> 32 & 255] ^
              t[2][x >> 40 & 255] ^ t[1][x >> 48 & 255] ^ t[0][x >> 56];
    }
    for (; size > 0; p++, size--) crc = t[0][(crc ^ *p) & 255] ^ crc >> 8;
    return crc;
}

#if defined(__x86_64__)
#include <cpuid.h>
#define KRAFTLAKE_STEP(crc, word) kraftlake_step(crc, word)
/* As assembler, for which the compiler need not know the processor. */
static inline uint32_t kraftlake_step(uint32_t crc, uint64_t word) {
    uint64_t wide = crc;
    __asm__("crc32q %1, %0" : "+r"(wide) : "r"(word));
    return (uint32_t)wide;
}

static int kraftlake_look(void) {
    unsigned int a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2);
}
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#define KRAFTLAKE_STEP(crc, word) kraftlake_step(crc, word)
static inline uint32_t kraftlake_step(uint32_t crc, uint64_t word) {
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
    return crc;
}

static int kraftlake_look(void) {
    return (getauxval(AT_HWCAP) >> 7) & 1;
}
#endif

#ifdef KRAFTLAKE_STEP
static uint32_t kraftlake_after_lane(uint32_t crc) {
    const uint32_t(*t)[256] = (const uint32_t(*)[256])kraftlake_behind_lane;
    return t[0][crc & 255] ^ t[1][crc >> 8 & 255] ^ t[2][crc >> 16 & 255] ^ t[3][crc >> 24];
}

static uint32_t kraftlake_crc_by_instruction(uint32_t crc, const unsigned char *p, size_t size) {
    while (size >= 3 * KRAFTLAKE_LANE) {
        uint32_t second = 0, third = 0;
        for (const unsigned char *end = p + KRAFTLAKE_LANE; p < end; p += 8) {
            crc = KRAFTLAKE_STEP(crc, kraftlake_word(p));
            second = KRAFTLAKE_STEP(second, kraftlake_word(p + KRAFTLAKE_LANE));
            third = KRAFTLAKE_STEP(third, kraftlake_word(p + 2 * KRAFTLAKE_LANE));
        }
        crc = kraftlake_after_lane(kraftlake_after_lane(crc) ^ second) ^ third;
        p += 2 * KRAFTLAKE_LANE;
        size -= 3 * KRAFTLAKE_LANE;
    }
    for (; size >= 8; p += 8, size -= 8) crc = KRAFTLAKE_STEP(crc, kraftlake_word(p));
    return kraftlake_crc_by_tables(crc, p, size);
}
#endif

/* Make the tables and look for the instruction, when the module is loaded. */
__attribute__((constructor)) static void kraftlake_begin(void) {
    for (int byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
        kraftlake_by_byte[0][byte] = crc;
    }
    for (int number = 1; number < 8; number++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = kraftlake_by_byte[number - 1][byte];
            kraftlake_by_byte[number][byte] = kraftlake_by_byte[0][before & 255] ^ before >> 8;
        }
    static const unsigned char zeros[KRAFTLAKE_LANE] = {0};
    for (int place = 0; place < 4; place++)
        for (int byte = 0; byte < 256; byte++)
            kraftlake_behind_lane[place][byte] =
                kraftlake_crc_by_tables((uint32_t)byte << 8 * place, zeros, KRAFTLAKE_LANE);
#ifdef KRAFTLAKE_STEP
    kraftlake_has_instruction = kraftlake_look();
#endif
}

static uint32_t kraftlake_crc32c(const unsigned char *p, size_t size, int with_instruction) {
#ifdef KRAFTLAKE_STEP
    if (with_instruction && kraftlake_has_instruction)
        return ~kraftlake_crc_by_instruction(0xFFFFFFFFu, p, size);
#else
    (void)with_instruction;
#endif
    return ~kraftlake_crc_by_tables(0xFFFFFFFFu, p, size);
}

#endif
