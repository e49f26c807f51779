/* The thread's floating-point mode: rounding to nearest, and subnormal numbers kept.
 *
 * A library that was built with -ffast-math, or torch.set_flush_denormal(True), may have set a
 * thread to flush subnormal numbers to zero. Kernels compute in the default mode and put back what
 * they found. */
#ifndef ONEMODEL_FLOAT_MODE_H
#define ONEMODEL_FLOAT_MODE_H

#include <stdint.h>

#if defined(__SSE2__) || defined(_M_X64) || defined(_M_AMD64)
#include <xmmintrin.h>
/* all exceptions masked; rounding, flush-to-zero and denormals-are-zero bits clear */
static inline uint64_t onemodel_default_float_mode(void) {
    uint64_t found = _mm_getcsr();
    if ((found & 0xFFC0u) != 0x1F80u) _mm_setcsr(0x1F80u);
    return found;
}
static inline void onemodel_restore_float_mode(uint64_t found) {
    if ((found & 0xFFC0u) != 0x1F80u) _mm_setcsr((unsigned int)found);
}
#elif defined(__aarch64__) && (defined(__GNUC__) || defined(__clang__))
static inline uint64_t onemodel_default_float_mode(void) {
    uint64_t found;
    __asm__ volatile("mrs %0, fpcr" : "=r"(found));
    if (found != 0) __asm__ volatile("msr fpcr, %0" : : "r"(UINT64_C(0)));
    return found;
}
static inline void onemodel_restore_float_mode(uint64_t found) {
    if (found != 0) __asm__ volatile("msr fpcr, %0" : : "r"(found));
}
#elif defined(__arm__) && defined(__ARM_FP) && (defined(__GNUC__) || defined(__clang__))
static inline uint64_t onemodel_default_float_mode(void) {
    uint32_t found;
    __asm__ volatile("vmrs %0, fpscr" : "=r"(found));
    if (found & 0x03FF9F00u) __asm__ volatile("vmsr fpscr, %0" : : "r"(found & 0xF8000000u));
    return found;
}
static inline void onemodel_restore_float_mode(uint64_t found) {
    if (found & 0x03FF9F00u) __asm__ volatile("vmsr fpscr, %0" : : "r"((uint32_t)found));
}
#else /* WebAssembly has one mode; elsewhere the C library's is taken as it is */
static inline uint64_t onemodel_default_float_mode(void) { return 0; }
static inline void onemodel_restore_float_mode(uint64_t found) { (void)found; }
#endif

/* Round to float32 in the default mode. A compiler that sees plain numbers may round before the
 * mode is set or after it is put back; volatile ones it reads and writes where they stand. */
static inline float onemodel_to_single(double value) {
    volatile double given = value;
    volatile float single;
    uint64_t mode = onemodel_default_float_mode();
    single = (float)given;
    onemodel_restore_float_mode(mode);
    return single;
}

#endif
