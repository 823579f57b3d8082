/* Sets the wall clock of a process ahead or back. Load it with LD_PRELOAD.
 *
 * CLOCK_SKEW   a file of eight bytes: by how many seconds, as a number of this machine
 *
 * Clocks that only go on are left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static const volatile int64_t *skew;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("CLOCK_SKEW");
    int file = path ? open(path, O_RDONLY) : -1;
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *skew, PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) skew = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    int outcome;
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    outcome = real(clock, time);
    if (outcome == 0 && clock == CLOCK_REALTIME && skew) time->tv_sec += *skew;
    return outcome;
}
