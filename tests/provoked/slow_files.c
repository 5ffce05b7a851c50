/* Makes a disk look slow: loaded into a process before the C library, it lets writes to files whose path contains
 * SLOW_PATH, but not SLOW_EXCEPT, take so long as SLOW_BYTES_PER_SECOND says; every fsync of them costs 5 ms more. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int concerns(int file) {
    const char *path = getenv("SLOW_PATH");
    char link[64], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, name, sizeof name - 1);
    if (path == NULL || length < 0) return 0;
    name[length] = 0;
    const char *except = getenv("SLOW_EXCEPT");
    return strstr(name, path) != NULL && (except == NULL || strstr(name, except) == NULL);
}

static void pause_seconds(double seconds) {
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
}

static void pay(int file, ssize_t bytes) {
    int before = errno;
    const char *rate = getenv("SLOW_BYTES_PER_SECOND");
    if (file > 2 && bytes > 0 && rate != NULL && concerns(file)) pause_seconds((double)bytes / atof(rate));
    errno = before;
}

#define REAL(name, type, ...) \
    static type (*real)(__VA_ARGS__); \
    if (real == NULL) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

ssize_t write(int file, const void *bytes, size_t length) {
    REAL("write", ssize_t, int, const void *, size_t);
    ssize_t done = real(file, bytes, length);
    pay(file, done);
    return done;
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off_t at) {
    REAL("pwrite64", ssize_t, int, const void *, size_t, off_t);
    ssize_t done = real(file, bytes, length, at);
    pay(file, done);
    return done;
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t at) {
    return pwrite64(file, bytes, length, at);
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off_t at) {
    REAL("pwritev64", ssize_t, int, const struct iovec *, int, off_t);
    ssize_t done = real(file, parts, count, at);
    pay(file, done);
    return done;
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) {
    return pwritev64(file, parts, count, at);
}

int fsync(int file) {
    REAL("fsync", int, int);
    if (concerns(file)) pause_seconds(0.005);
    return real(file);
}

int fdatasync(int file) {
    REAL("fdatasync", int, int);
    if (concerns(file)) pause_seconds(0.005);
    return real(file);
}

int posix_fallocate64(int file, off_t at, off_t length) {
    REAL("posix_fallocate64", int, int, off_t, off_t);
    int done = real(file, at, length);
    pay(file, length);
    return done;
}

int posix_fallocate(int file, off_t at, off_t length) {
    return posix_fallocate64(file, at, length);
}
