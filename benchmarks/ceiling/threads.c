/* Runs one function on several threads. */
#include <pthread.h>

#include "common.h"

enum { MOST_THREADS = 64 };

typedef struct {
    thread_work work;
    const void *job;
    int64_t first, steps;
    int kernel, thread, threads;
} portion;

static void *run_portion(void *argument)
{
    const portion *p = argument;
    p->work(p->job, p->kernel, p->first, p->steps, p->thread, p->threads);
    return 0;
}

void run_threads(thread_work work, const void *job, int kernel, int64_t first, int64_t steps,
                 int threads)
{
    pthread_t handles[MOST_THREADS];
    portion portions[MOST_THREADS];
    if (threads > MOST_THREADS)
        threads = MOST_THREADS;
    for (int t = 0; t < threads; t++)
        portions[t] = (portion){work, job, first, steps, kernel, t, threads};
    int started = 1;
    while (started < threads
           && !pthread_create(&handles[started], 0, run_portion, &portions[started]))
        started++;
    run_portion(&portions[0]);
    for (int t = started; t < threads; t++) /* threads that could not start: their share, here */
        run_portion(&portions[t]);
    for (int t = 1; t < started; t++)
        pthread_join(handles[t], 0);
}
