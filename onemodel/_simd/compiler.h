/* What the compiler and the processor offer to the loops, and what the loops need of them. */
#ifndef ONEMODEL_COMPILER_H
#define ONEMODEL_COMPILER_H

#include <float.h>
#include <stdint.h>
#include <string.h>

/* 0: each operation rounds to its own type; 16: the same, and half floats are a type too. The x87
 * unit of 32-bit x86 gives 2 and keeps intermediate results in 80 bits, which changes batches. */
#if (FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16) || defined(__FAST_MATH__) || defined(_M_FP_FAST)
#error "onemodel must round every float operation to its type (FLT_EVAL_METHOD must be 0): on 32-bit x86 compile with -msse2 -mfpmath=sse, and nowhere with -ffast-math"
#endif

#if defined(__SSE2__) || defined(_M_X64)
#include <immintrin.h>
#define ONEMODEL_SSE2 1
#endif

#if defined(ONEMODEL_SSE2) && (defined(__GNUC__) || defined(__clang__))
#define ONEMODEL_AVX2 1
#define ONEMODEL_TARGET_AVX2 __attribute__((target("avx2")))
#endif

#if defined(__GNUC__) || defined(__clang__)
#define ONEMODEL_INLINE inline __attribute__((always_inline))
#else
#define ONEMODEL_INLINE inline
#endif

/* Loops that may run in place: a compiler that fears overlap would take its scalar version. */
#if defined(__clang__)
#define ONEMODEL_IN_PLACE _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define ONEMODEL_IN_PLACE _Pragma("GCC ivdep")
#else
#define ONEMODEL_IN_PLACE
#endif

#endif
