/* Makes one file call of a process fail, or kills the process there. Load it with LD_PRELOAD.
 *
 * FAIL_UNDER   the directory whose files it watches; other calls pass
 * FAIL_CALL    the only name of calls that it watches, such as sync; without it, it watches all
 * FAIL_WHEN    a file; other calls pass while it is missing
 * FAIL_BY      with kill, the call kills the process
 * FAIL_AT      the number of the failing call, counted from 1 over all threads; 0 fails none
 * FAIL_LOG     a file that gets one line per call: number, name, file
 *
 * Opening fails with EMFILE; write, ftruncate and mkdir with ENOSPC; sync, rename and unlink with EIO. A failing write
 * has written half of its bytes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long calls;

static int is_under(const char *path) {
    const char *under = getenv("FAIL_UNDER");
    return under && path && strncmp(path, under, strlen(under)) == 0;
}

static int fails(const char *call, const char *path) {
    const char *at = getenv("FAIL_AT");
    const char *log = getenv("FAIL_LOG");
    const char *only = getenv("FAIL_CALL"), *when = getenv("FAIL_WHEN"), *by = getenv("FAIL_BY");
    long number;
    if (!at || !is_under(path)) return 0;
    if ((only && strcmp(only, call) != 0) || (when && access(when, F_OK) != 0)) return 0;
    number = atomic_fetch_add(&calls, 1) + 1;
    if (log) {
        static int (*real_open)(const char *, int, ...);
        static ssize_t (*real_write)(int, const void *, size_t);
        char line[4400];
        int file, length;
        if (!real_open) real_open = dlsym(RTLD_NEXT, "open");
        if (!real_write) real_write = dlsym(RTLD_NEXT, "write");
        length = snprintf(line, sizeof line, "%ld %s %s\n", number, call, path);
        file = real_open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (file >= 0) {
            if (real_write(file, line, length) < 0) {}
            close(file);
        }
    }
    if (number == atol(at) && by && strcmp(by, "kill") == 0) kill(getpid(), SIGKILL);
    return number == atol(at);
}

static int fd_fails(const char *call, int fd) {
    char link[64], path[4096];
    ssize_t length;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return fails(call, path);
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT); }

#define OPENS(name) \
    int name(const char *path, int flags, ...) { \
        mode_t mode = 0; \
        va_list rest; \
        REAL(name); \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
        if (writes(flags) && fails("open", path)) { errno = EMFILE; return -1; } \
        if ((flags & O_DIRECTORY) == 0 && !writes(flags) && fails("open-to-read", path)) { errno = EMFILE; return -1; } \
        return real(path, flags, mode); \
    }
OPENS(open)
OPENS(open64)

#define WRITES(name, parameters, arguments, half) \
    ssize_t name parameters { \
        REAL(name); \
        if (fd_fails("write", fd)) { if (count > 1 && real half < 0) {} errno = ENOSPC; return -1; } \
        return real arguments; \
    }
WRITES(write, (int fd, const void *bytes, size_t count), (fd, bytes, count), (fd, bytes, count / 2))
WRITES(pwrite64, (int fd, const void *bytes, size_t count, off64_t at), (fd, bytes, count, at), (fd, bytes, count / 2, at))

#define ON_FD(name, call, parameters, arguments, error) \
    int name parameters { \
        REAL(name); \
        if (fd_fails(call, fd)) { errno = error; return -1; } \
        return real arguments; \
    }
ON_FD(fsync, "sync", (int fd), (fd), EIO)
ON_FD(fdatasync, "sync", (int fd), (fd), EIO)
ON_FD(ftruncate64, "truncate", (int fd, off64_t length), (fd, length), ENOSPC)

int rename(const char *from, const char *to) {
    REAL(rename);
    if (fails("rename", to)) { errno = EIO; return -1; }
    return real(from, to);
}

int unlink(const char *path) {
    REAL(unlink);
    if (fails("unlink", path)) { errno = EIO; return -1; }
    return real(path);
}

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    if (fails("mkdir", path)) { errno = ENOSPC; return -1; }
    return real(path, mode);
}
