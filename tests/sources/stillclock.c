/* A clock that stands still, in the place of the C library's: what preloaded libraries do who give a program a time of their own. */
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *time)
{
    (void)clock;
    time->tv_sec = 7;
    time->tv_nsec = 0;
    return 0;
}
