/* Pages of memory-mapped files: what the system is told before they are read.
 *
 * Where a platform has no such call, nothing happens and nothing is counted: it only costs time.
 */
#ifndef ONEMODEL_MAPPED_PAGES_H
#define ONEMODEL_MAPPED_PAGES_H

#include <stdint.h>

#if defined(__linux__)

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Ask for the pages of [begin, begin + bytes), which are read soon. */
static inline void onemodel_will_need(const char *begin, int64_t bytes)
{
    uintptr_t into = (uintptr_t)begin % (uintptr_t)sysconf(_SC_PAGESIZE);
    (void)madvise((char *)begin - into, (size_t)bytes + into, MADV_WILLNEED);
}

/* How often this process has waited until a page was read from a file. */
static inline int64_t onemodel_page_waits(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_majflt : 0;
}

#else

static inline void onemodel_will_need(const char *begin, int64_t bytes)
{
    (void)begin;
    (void)bytes;
}

static inline int64_t onemodel_page_waits(void) { return 0; }

#endif
#endif
