/* Seconds that went by, and seconds that this thread computed. They steer how many workers build
 * and never what they build. */
#ifndef ONEMODEL_CLOCK_H
#define ONEMODEL_CLOCK_H

#ifdef _WIN32
#include <windows.h>
static inline double onemodel_seconds(void) {
    LARGE_INTEGER now, frequency;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&frequency);
    return (double)now.QuadPart / (double)frequency.QuadPart;
}
static inline double onemodel_thread_seconds(void) {
    FILETIME made, ended, kernel, user;
    if (!GetThreadTimes(GetCurrentThread(), &made, &ended, &kernel, &user)) return 0.0;
    return 1e-7 * (double)(((unsigned long long)(kernel.dwHighDateTime) << 32 | kernel.dwLowDateTime) +
                           ((unsigned long long)(user.dwHighDateTime) << 32 | user.dwLowDateTime));
}
#else
#include <time.h>
static inline double onemodel_clock(clockid_t clock) {
    struct timespec now;
    if (clock_gettime(clock, &now) != 0) return 0.0;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
static inline double onemodel_seconds(void) { return onemodel_clock(CLOCK_MONOTONIC); }
#ifdef CLOCK_THREAD_CPUTIME_ID
static inline double onemodel_thread_seconds(void) { return onemodel_clock(CLOCK_THREAD_CPUTIME_ID); }
#else
static inline double onemodel_thread_seconds(void) { return 0.0; }
#endif
#endif

#endif
