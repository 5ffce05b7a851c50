/* Makes a disk look full: loaded into a process before the C library, it lets the files whose path contains
 * FULL_DISK_PATH (and not FULL_DISK_EXCEPT) take FULL_DISK_BYTES bytes in all; then every write to them fails with ENOSPC,
 * as does growing them.
 * Nothing is freed: a disk that is full stays full until the process ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_llong used_bytes;

static int concerns(int file) {
    const char *path = getenv("FULL_DISK_PATH");
    char link[64], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, name, sizeof name - 1);
    if (path == NULL || length < 0) return 0;
    name[length] = 0;
    const char *except = getenv("FULL_DISK_EXCEPT");
    return strstr(name, path) != NULL && (except == NULL || strstr(name, except) == NULL);
}

/* How far a write to `end` makes the file grow; a place that is there already can be written again. */
static int full(int file, off_t end) {
    struct stat status;
    if (!concerns(file) || fstat(file, &status) != 0) return 0;
    long long growth = end > status.st_size ? end - status.st_size : 0;
    if (growth == 0) return 0;
    const char *limit = getenv("FULL_DISK_BYTES");
    if (atomic_fetch_add(&used_bytes, growth) + growth <= atoll(limit == NULL ? "0" : limit)) return 0;
    errno = ENOSPC;
    return 1;
}

static off_t place(int file) {
    struct stat status;
    off_t at = lseek(file, 0, SEEK_CUR);
    return at >= 0 ? at : fstat(file, &status) == 0 ? status.st_size : 0;
}

ssize_t write(int file, const void *bytes, size_t length) {
    static ssize_t (*real)(int, const void *, size_t);
    if (real == NULL) real = dlsym(RTLD_NEXT, "write");
    int before = errno;
    if (file > 2 && full(file, place(file) + (off_t)length)) return -1;
    errno = before;
    return real(file, bytes, length);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off_t at) {
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (real == NULL) real = dlsym(RTLD_NEXT, "pwrite64");
    return full(file, at + (off_t)length) ? -1 : real(file, bytes, length, at);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t at) { return pwrite64(file, bytes, length, at); }

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) {
    static ssize_t (*real)(int, const struct iovec *, int, off_t);
    if (real == NULL) real = dlsym(RTLD_NEXT, "pwritev");
    off_t end = at;
    for (int part = 0; part < count; part++) end += (off_t)parts[part].iov_len;
    return full(file, end) ? -1 : real(file, parts, count, at);
}

static int grow(int file, off_t length) { return full(file, length); }

int ftruncate64(int file, off_t length) {
    static int (*real)(int, off_t);
    if (real == NULL) real = dlsym(RTLD_NEXT, "ftruncate64");
    return grow(file, length) ? -1 : real(file, length);
}

int ftruncate(int file, off_t length) { return ftruncate64(file, length); }

int posix_fallocate64(int file, off_t at, off_t length) {
    static int (*real)(int, off_t, off_t);
    if (real == NULL) real = dlsym(RTLD_NEXT, "posix_fallocate64");
    return grow(file, at + length) ? ENOSPC : real(file, at, length);
}

int posix_fallocate(int file, off_t at, off_t length) { return posix_fallocate64(file, at, length); }

int fallocate64(int file, int mode, off_t at, off_t length) {
    static int (*real)(int, int, off_t, off_t);
    if (real == NULL) real = dlsym(RTLD_NEXT, "fallocate64");
    return grow(file, at + length) ? -1 : real(file, mode, at, length);
}

int fallocate(int file, int mode, off_t at, off_t length) { return fallocate64(file, mode, at, length); }
