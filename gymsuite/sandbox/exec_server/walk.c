#define _GNU_SOURCE
#include "walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "paths.h"

enum {
    DEPTH = 256,
    PIECE = 512 << 10,
    PIECE_US = 5000,
    CLOCK_EVERY = 32, /* entries between two looks at the clock */
    READ_AT_ONCE = 64 << 10,
};

/* A directory that is being listed, and how much of the path leads to it. */
struct level {
    DIR *entries;
    size_t path_size;
    dev_t device;
    mode_t mode;
    bool unlocked;
};

struct walk {
    struct walk_wish wish; /* what is left of it */
    uint64_t file_left;
    int file; /* whose contents are being sent, or -1 */
    size_t depth, path_size;
    struct level levels[DEPTH];
    char path[PATH_MAX];
};

static void close_file(struct walk *walk) {
    if (walk->file >= 0) close(walk->file);
    walk->file = -1;
}

static void leave(struct walk *walk) {
    struct level *level = &walk->levels[--walk->depth];
    if (level->unlocked) entry_lock(dirfd(level->entries), level->mode);
    closedir(level->entries);
}

void walk_free(struct walk *walk) {
    close_file(walk);
    while (walk->depth) leave(walk);
    free(walk);
}

static void skip(const struct walk *walk, struct buffer *reply, int error) {
    buffer_u8(reply, RECORD_SKIPPED);
    buffer_u32(reply, (uint32_t)error);
    buffer_u32(reply, (uint32_t)walk->path_size);
    buffer_append(reply, walk->path, walk->path_size);
}

static uint64_t nanoseconds(const struct timespec *time) {
    return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
}

static void record(const struct walk *walk, struct buffer *reply, const struct stat *status) {
    buffer_u8(reply, RECORD_ENTRY);
    buffer_u32(reply, status->st_mode);
    buffer_u64(reply, status->st_ino);
    buffer_u64(reply, (uint64_t)status->st_size);
    buffer_u64(reply, nanoseconds(&status->st_ctim));
    buffer_u64(reply, nanoseconds(&status->st_atim));
    buffer_u32(reply, (uint32_t)walk->path_size);
    buffer_append(reply, walk->path, walk->path_size);
}

/* Takes the descriptor over, unless it returns an error. */
static int enter(struct walk *walk, int fd, const struct stat *status, bool unlocked) {
    if (walk->depth == DEPTH) return ENAMETOOLONG;
    DIR *entries = fdopendir(fd);
    if (!entries) return errno;
    walk->levels[walk->depth++] =
        (struct level){entries, walk->path_size, status->st_dev, status->st_mode, unlocked};
    return 0;
}

static void visit_directory(struct walk *walk, const char *name, const struct stat *status, struct buffer *reply) {
    const struct level *level = &walk->levels[walk->depth - 1];
    bool unlocked;
    record(walk, reply, status);
    int fd = entry_open(dirfd(level->entries), name, status, &unlocked);
    if (fd < 0) {
        if (errno != ENOENT) skip(walk, reply, errno);
        return;
    }
    bool foreign = status->st_dev != level->device && path_is_made_up(fd);
    int error = foreign ? 0 : enter(walk, fd, status, unlocked);
    if (!foreign && !error) return;
    if (unlocked) entry_lock(fd, status->st_mode);
    close(fd);
    if (error) skip(walk, reply, error);
}

static enum walk_state visit_file(struct walk *walk, const char *name, struct stat *status, struct buffer *reply) {
    const struct level *level = &walk->levels[walk->depth - 1];
    bool unlocked;
    int fd = entry_open(dirfd(level->entries), name, status, &unlocked);
    if (fd < 0) {
        if (errno != ENOENT) skip(walk, reply, errno);
        return WALK_MORE;
    }
    mode_t mode = status->st_mode;
    if (fstat(fd, status) || !S_ISREG(status->st_mode)) {
        /* It became something else meanwhile. */
        close(fd);
        skip(walk, reply, ESTALE);
        return WALK_MORE;
    }
    status->st_mode = mode;
    record(walk, reply, status);
    walk->file = fd;
    walk->file_left = (uint64_t)status->st_size;
    return walk->file_left > walk->wish.bytes ? WALK_TOO_LARGE : WALK_MORE;
}

static void add_data(struct buffer *reply, const void *data, size_t size) {
    buffer_u8(reply, RECORD_DATA);
    buffer_u32(reply, (uint32_t)size);
    buffer_append(reply, data, size);
}

static void visit_link(struct walk *walk, const char *name, const struct stat *status, struct buffer *reply) {
    char target[PATH_MAX];
    ssize_t size = readlinkat(dirfd(walk->levels[walk->depth - 1].entries), name, target, sizeof target);
    if (size < 0) {
        skip(walk, reply, errno == EINVAL ? ESTALE : errno);
        return;
    }
    record(walk, reply, status);
    add_data(reply, target, (size_t)size);
}

static enum walk_state visit(struct walk *walk, const char *name, struct buffer *reply) {
    const struct level *level = &walk->levels[walk->depth - 1];
    size_t size = strlen(name), at = level->path_size;
    struct stat status;
    walk->path_size = at;
    if (at + 1 + size > sizeof walk->path) {
        skip(walk, reply, ENAMETOOLONG);
        return WALK_MORE;
    }
    if (at) walk->path[at++] = '/';
    memcpy(walk->path + at, name, size);
    walk->path_size = at + size;
    if (fstatat(dirfd(level->entries), name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT)) {
        if (errno != ENOENT) skip(walk, reply, errno);
        return WALK_MORE;
    }
    if (!walk->wish.entries) return WALK_TOO_MANY;
    walk->wish.entries--;
    if (S_ISDIR(status.st_mode)) visit_directory(walk, name, &status, reply);
    else if (walk->wish.contents && S_ISREG(status.st_mode)) return visit_file(walk, name, &status, reply);
    else if (walk->wish.contents && S_ISLNK(status.st_mode)) visit_link(walk, name, &status, reply);
    else record(walk, reply, &status);
    return WALK_MORE;
}

/* No more than the file had when it was opened, or a log that grows would never end. */
static void send_contents(struct walk *walk, struct buffer *reply) {
    uint8_t data[READ_AT_ONCE];
    ssize_t got = read(walk->file, data, walk->file_left < READ_AT_ONCE ? (size_t)walk->file_left : READ_AT_ONCE);
    if (got < 0 && errno == EINTR) return;
    if (got < 0) skip(walk, reply, errno);
    if (got > 0) {
        add_data(reply, data, (size_t)got);
        walk->file_left -= (uint64_t)got;
        walk->wish.bytes -= (uint64_t)got;
    }
    if (got <= 0 || !walk->file_left) close_file(walk);
}

static enum walk_state step(struct walk *walk, struct buffer *reply) {
    if (walk->file >= 0) {
        send_contents(walk, reply);
        return WALK_MORE;
    }
    if (!walk->depth) return WALK_DONE;
    errno = 0;
    const struct level *level = &walk->levels[walk->depth - 1];
    const struct dirent *entry = readdir(level->entries);
    if (entry) {
        bool itself = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
        return itself ? WALK_MORE : visit(walk, entry->d_name, reply);
    }
    walk->path_size = level->path_size;
    if (errno) skip(walk, reply, errno);
    leave(walk);
    return WALK_MORE;
}

enum walk_state walk_piece(struct walk *walk, struct buffer *reply) {
    int64_t until = now_us() + PIECE_US;
    size_t end = reply->size + PIECE;
    for (unsigned i = 1; reply->size < end; i++) {
        enum walk_state state = step(walk, reply);
        if (state != WALK_MORE) return state;
        if (i % CLOCK_EVERY == 0 && now_us() >= until) break;
    }
    return WALK_MORE;
}

static int open_root(struct walk *walk, char *path) {
    struct stat status;
    int flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC;
    int fd = path_open(path, flags, 0, false);
    if (fd < 0 && errno == EACCES && *path == '/') {
        path_unlock_parents(path);
        path_unlock(path);
        fd = path_open(path, flags, 0, false);
    }
    if (fd < 0) return errno;
    int error = fstat(fd, &status) || path_is_made_up(fd) ? EINVAL : enter(walk, fd, &status, false);
    if (error) close(fd);
    return error;
}

struct walk *walk_open(char *path, struct walk_wish wish) {
    struct walk *walk = calloc(1, sizeof *walk);
    if (!walk) die("out of memory");
    walk->wish = wish;
    walk->file = -1;
    int error = open_root(walk, path);
    if (!error) return walk;
    walk_free(walk);
    errno = error;
    return NULL;
}
