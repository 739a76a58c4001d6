/* The x86-64 instruction-set levels that a processor runs: for the module _processor, and for the
   build, which asks it which level to compile. C for the oldest processor. */
#ifndef ANYDML_LEVELS_H
#define ANYDML_LEVELS_H

#include <stddef.h>

#include <cpuid.h>

/* What the psABI's levels ask for, one bit each, beyond plain x86-64. The compiler's own test knows
   the levels by name only in its newest versions. */
enum { BASIC_ECX, STRUCTURED_EBX, EXTENDED_ECX, XCR0, REGISTERS };
typedef struct {
  int level;
  int source;
  int bit;
} Feature;
static const Feature features[] = {
    {2, BASIC_ECX, 0},       /* SSE3 */
    {2, BASIC_ECX, 9},       /* SSSE3 */
    {2, BASIC_ECX, 13},      /* CMPXCHG16B */
    {2, BASIC_ECX, 19},      /* SSE4.1 */
    {2, BASIC_ECX, 20},      /* SSE4.2 */
    {2, BASIC_ECX, 23},      /* POPCNT */
    {2, EXTENDED_ECX, 0},    /* LAHF, SAHF */
    {3, BASIC_ECX, 12},      /* FMA */
    {3, BASIC_ECX, 22},      /* MOVBE */
    {3, BASIC_ECX, 26},      /* XSAVE */
    {3, BASIC_ECX, 27},      /* OSXSAVE: the system has switched it on, XCR0 may be read */
    {3, BASIC_ECX, 28},      /* AVX */
    {3, BASIC_ECX, 29},      /* F16C */
    {3, STRUCTURED_EBX, 3},  /* BMI1 */
    {3, STRUCTURED_EBX, 5},  /* AVX2 */
    {3, STRUCTURED_EBX, 8},  /* BMI2 */
    {3, EXTENDED_ECX, 5},    /* LZCNT */
    {3, XCR0, 1},            /* the system saves the registers of 128 bits */
    {3, XCR0, 2},            /* and their upper halves */
    {4, STRUCTURED_EBX, 16}, /* AVX512F */
    {4, STRUCTURED_EBX, 17}, /* AVX512DQ */
    {4, STRUCTURED_EBX, 28}, /* AVX512CD */
    {4, STRUCTURED_EBX, 30}, /* AVX512BW */
    {4, STRUCTURED_EBX, 31}, /* AVX512VL */
    {4, XCR0, 5},            /* the system saves the masks */
    {4, XCR0, 6},            /* the upper halves of the first 16 registers of 512 bits */
    {4, XCR0, 7},            /* and all of the other 16 */
};

/* The best level that all features before it allow: 2 to 4, or 1 for plain x86-64. */
static int best_level(const unsigned* registers) {
  int best = 4;
  for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); ++i)
    if ((registers[features[i].source] >> features[i].bit & 1) == 0 && best >= features[i].level)
      best = features[i].level - 1;
  return best;
}

static void read_registers(unsigned* registers) {
  unsigned a, b, c, d;
  for (int i = 0; i < REGISTERS; ++i) registers[i] = 0;
  if (__get_cpuid(1, &a, &b, &c, &d)) registers[BASIC_ECX] = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) registers[STRUCTURED_EBX] = b;
  if (__get_cpuid(0x80000001u, &a, &b, &c, &d)) registers[EXTENDED_ECX] = c;
  /* xgetbv by its bytes: the oldest processor's compiler options do not have it. */
  if ((registers[BASIC_ECX] >> 27 & 1) != 0)
    __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(registers[XCR0]), "=d"(d) : "c"(0));
}

#endif
