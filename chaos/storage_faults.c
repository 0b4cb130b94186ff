/* A disk that fails: loaded into the node's processes with LD_PRELOAD, it makes the file calls on one folder fail.
 *
 * CHAOS_STORAGE_FOLDER names the folder, CHAOS_STORAGE_SWITCH a file of eight 64-bit numbers: the first is the mode
 * (0 off, 1 EIO for what writes, 2 EIO for what reads too, 3 a read-only file system), the one at each mode's own place
 * counts the calls that it made fail. The file is shared memory: turning the switch reaches all processes at once.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

enum { OFF, EIO_WRITES, EIO_ALL, READ_ONLY };

static volatile uint64_t *board;
static const char *folder;
static size_t folder_length;

__attribute__((constructor)) static void begin(void) {
    const char *place = getenv("CHAOS_STORAGE_SWITCH");
    folder = getenv("CHAOS_STORAGE_FOLDER");
    if (!place || !folder) return;
    int fd = open(place, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    void *shared = mmap(NULL, 64, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    folder = strdup(folder);
    folder_length = folder ? strlen(folder) : 0;
    if (shared != MAP_FAILED && folder_length) board = shared;
}

static int is_below(const char *path) {
    return !strncmp(path, folder, folder_length) && (path[folder_length] == '/' || !path[folder_length]);
}

static int is_ours(int fd) {
    char link[32], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return is_below(path);
}

static int names_ours(int at, const char *path) {
    if (path[0] == '/') return is_below(path);
    return at != AT_FDCWD && is_ours(at);
}

static int fail(uint64_t mode) {
    __atomic_fetch_add(&board[mode], 1, __ATOMIC_RELAXED);
    errno = mode == READ_ONLY ? EROFS : EIO;
    return 1;
}

enum { READS, WRITES, SYNCS };

/* Whether a call on an open file fails now. errno stays as it was where it does not. */
static int strikes(int fd, int what) {
    uint64_t mode = board ? board[0] : OFF;
    if (mode == OFF || (what == READS && mode != EIO_ALL) || (what == SYNCS && mode == READ_ONLY)) return 0;
    int before = errno;
    if (is_ours(fd)) return fail(mode);
    errno = before;
    return 0;
}

/* The same for a call by name. A failing disk still knows the names that it has in memory. */
static int strikes_name(int at, const char *path, int changes) {
    uint64_t mode = board ? board[0] : OFF;
    if (mode != READ_ONLY || !changes || !path) return 0;
    int before = errno;
    if (names_ours(at, path)) return fail(mode);
    errno = before;
    return 0;
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

#define ON_OPEN_FILE(type, name, what, parameters, arguments, ...) \
    type name parameters { \
        REAL(type, name, __VA_ARGS__); \
        return strikes(fd, what) ? -1 : real arguments; \
    }

ON_OPEN_FILE(ssize_t, read, READS, (int fd, void *to, size_t n), (fd, to, n), int, void *, size_t)
ON_OPEN_FILE(ssize_t, __read_chk, READS, (int fd, void *to, size_t n, size_t m), (fd, to, n, m), int, void *, size_t, size_t)
ON_OPEN_FILE(ssize_t, pread, READS, (int fd, void *to, size_t n, off_t at), (fd, to, n, at), int, void *, size_t, off_t)
ON_OPEN_FILE(ssize_t, pread64, READS, (int fd, void *to, size_t n, off64_t at), (fd, to, n, at), int, void *, size_t, off64_t)
ON_OPEN_FILE(ssize_t, write, WRITES, (int fd, const void *from, size_t n), (fd, from, n), int, const void *, size_t)
ON_OPEN_FILE(ssize_t, pwrite, WRITES, (int fd, const void *from, size_t n, off_t at), (fd, from, n, at), int, const void *, size_t, off_t)
ON_OPEN_FILE(ssize_t, pwrite64, WRITES, (int fd, const void *from, size_t n, off64_t at), (fd, from, n, at), int, const void *, size_t, off64_t)
ON_OPEN_FILE(int, ftruncate, WRITES, (int fd, off_t n), (fd, n), int, off_t)
ON_OPEN_FILE(int, ftruncate64, WRITES, (int fd, off64_t n), (fd, n), int, off64_t)
ON_OPEN_FILE(int, fsync, SYNCS, (int fd), (fd), int)
ON_OPEN_FILE(int, fdatasync, SYNCS, (int fd), (fd), int)

#define OPENS(flags) (((flags) & O_ACCMODE) != O_RDONLY || ((flags) & (O_CREAT | O_TRUNC)))

#define ON_OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, name, const char *, int, ...); \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        return strikes_name(AT_FDCWD, path, OPENS(flags)) ? -1 : real(path, flags, mode); \
    }

#define ON_OPENAT(name) \
    int name(int at, const char *path, int flags, ...) { \
        REAL(int, name, int, const char *, int, ...); \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        return strikes_name(at, path, OPENS(flags)) ? -1 : real(at, path, flags, mode); \
    }

ON_OPEN(open)
ON_OPEN(open64)
ON_OPENAT(openat)
ON_OPENAT(openat64)

int rename(const char *from, const char *to) {
    REAL(int, rename, const char *, const char *);
    return strikes_name(AT_FDCWD, to, 1) ? -1 : real(from, to);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, mkdir, const char *, mode_t);
    return strikes_name(AT_FDCWD, path, access(path, F_OK) != 0) ? -1 : real(path, mode);
}

int unlink(const char *path) {
    REAL(int, unlink, const char *);
    return strikes_name(AT_FDCWD, path, access(path, F_OK) == 0) ? -1 : real(path);
}

int chmod(const char *path, mode_t mode) {
    REAL(int, chmod, const char *, mode_t);
    return strikes_name(AT_FDCWD, path, 1) ? -1 : real(path, mode);
}
