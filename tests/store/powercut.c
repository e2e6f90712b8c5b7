/* Logs what a process does to the files below one folder: LD_PRELOAD it, with POWERCUT_FOLDER and POWERCUT_LOG set.
   Each record: op, length of path, path, offset, length of data, data. Ops: C create, W write, T truncate, S sync,
   U unlink, R rename (data is the new path). All calls go to the kernel first; what failed is not logged. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILES 4096
static char *paths[FILES];
static int log_fd = -1;
static const char *folder;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("POWERCUT_LOG");
    folder = getenv("POWERCUT_FOLDER");
    if (name && folder)
        log_fd = syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int ours(const char *path) { return log_fd >= 0 && path && !strncmp(path, folder, strlen(folder)); }

static void put(const void *data, size_t size) {
    while (size) {
        long done = syscall(SYS_write, log_fd, data, size);
        if (done <= 0)
            _exit(99);
        data = (const char *)data + done;
        size -= done;
    }
}

static void record(char op, const char *path, int64_t at, const void *data, uint32_t size) {
    uint16_t length = strlen(path);
    pthread_mutex_lock(&lock);
    put(&op, 1);
    put(&length, 2);
    put(path, length);
    put(&at, 8);
    put(&size, 4);
    put(data, size);
    pthread_mutex_unlock(&lock);
}

static int opened(int fd, const char *path, int flags, int there) {
    if (fd >= 0 && fd < FILES) {
        free(paths[fd]);
        paths[fd] = ours(path) ? strdup(path) : NULL;
        if (paths[fd] && !there)
            record('C', path, 0, "", 0);
        if (paths[fd] && there && (flags & O_TRUNC))
            record('T', path, 0, "", 0);
    }
    return fd;
}

static int open_any(const char *path, int flags, mode_t mode) {
    struct stat found;
    int there = !ours(path) || !syscall(SYS_newfstatat, AT_FDCWD, path, &found, 0);
    return opened(syscall(SYS_openat, AT_FDCWD, path, flags, mode), path, flags, there);
}

#define OPEN(name)                                        \
    int name(const char *path, int flags, ...) {          \
        va_list more;                                     \
        va_start(more, flags);                            \
        mode_t mode = va_arg(more, int);                  \
        va_end(more);                                     \
        return open_any(path, flags, mode);               \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                      \
    int name(int at, const char *path, int flags, ...) {  \
        va_list more;                                     \
        va_start(more, flags);                            \
        mode_t mode = va_arg(more, int);                  \
        va_end(more);                                     \
        if (at == AT_FDCWD || path[0] == '/')             \
            return open_any(path, flags, mode);           \
        return syscall(SYS_openat, at, path, flags, mode);\
    }
OPENAT(openat)
OPENAT(openat64)

int close(int fd) {
    if (fd >= 0 && fd < FILES && paths[fd]) {
        free(paths[fd]);
        paths[fd] = NULL;
    }
    return syscall(SYS_close, fd);
}

static int known(int fd) { return fd >= 0 && fd < FILES && paths[fd]; }

ssize_t write(int fd, const void *data, size_t size) {
    int64_t at = known(fd) ? syscall(SYS_lseek, fd, 0, SEEK_CUR) : 0;
    struct stat found;
    if (known(fd) && (syscall(SYS_fcntl, fd, F_GETFL) & O_APPEND) && !syscall(SYS_fstat, fd, &found))
        at = found.st_size;
    ssize_t done = syscall(SYS_write, fd, data, size);
    if (done > 0 && known(fd))
        record('W', paths[fd], at, data, done);
    return done;
}

#define PWRITE(name)                                                    \
    ssize_t name(int fd, const void *data, size_t size, off64_t at) {   \
        ssize_t done = syscall(SYS_pwrite64, fd, data, size, at);       \
        if (done > 0 && known(fd))                                      \
            record('W', paths[fd], at, data, done);                     \
        return done;                                                    \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define TRUNCATE(name)                                    \
    int name(int fd, off64_t size) {                      \
        int failed = syscall(SYS_ftruncate, fd, size);    \
        if (!failed && known(fd))                         \
            record('T', paths[fd], size, "", 0);          \
        return failed;                                    \
    }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

#define SYNC(name)                                        \
    int name(int fd) {                                    \
        int failed = syscall(SYS_##name, fd);             \
        if (!failed && known(fd))                         \
            record('S', paths[fd], 0, "", 0);             \
        return failed;                                    \
    }
SYNC(fsync)
SYNC(fdatasync)

int unlink(const char *path) {
    int failed = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (!failed && ours(path))
        record('U', path, 0, "", 0);
    return failed;
}

int rename(const char *from, const char *to) {
    int failed = syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
    if (!failed && ours(from))
        record('R', from, 0, to, strlen(to));
    return failed;
}
