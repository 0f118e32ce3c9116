#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive.h"
#include "files.h"
#include "paths.h"

/* Where entries are made: their root, and the directory of the last one, which mostly is the next one's. */
struct place {
    int root, parent;
    const char *directory;
    size_t directory_size;
};

struct made_entry {
    enum made kind;
    mode_t mode;
    const char *path;
    const uint8_t *data; /* of a link, its target with a final NUL */
    size_t size;
};

/* Neither empty, nor `.`, nor `..`, in any part. */
static bool is_plain(const char *path) {
    for (;; path++) {
        size_t size = strcspn(path, "/");
        if (!size || (size <= 2 && !strncmp(path, "..", size))) return false;
        path += size;
        if (!*path) return true;
    }
}

static int fail(int error) {
    errno = error;
    return -1;
}

static void forget_parent(struct place *place) {
    if (place->parent >= 0 && place->parent != place->root) close(place->parent);
    place->parent = -1;
}

/* Goes down from the root, and never through a link. */
static int descend(int root, const char *directory, size_t size) {
    char name[NAME_MAX + 1];
    int here = root;
    for (const char *end = directory + size; directory < end;) {
        size_t length = strcspn(directory, "/");
        int next = length > NAME_MAX ? fail(ENAMETOOLONG) : 0;
        if (!next) {
            memcpy(name, directory, length);
            name[length] = 0;
            next = openat(here, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        int error = errno;
        if (here != root) close(here);
        errno = error;
        if (next < 0) return -1;
        here = next;
        directory += length + 1;
    }
    return here;
}

/* The name of an entry in `place->parent`, or NULL. */
static const char *enter_parent(struct place *place, const char *path) {
    const char *slash = strrchr(path, '/');
    size_t size = slash ? (size_t)(slash - path) : 0;
    const char *name = slash ? slash + 1 : path;
    if (place->parent >= 0 && size == place->directory_size && !memcmp(path, place->directory, size)) return name;
    forget_parent(place);
    place->parent = descend(place->root, path, size);
    place->directory = path;
    place->directory_size = size;
    return place->parent < 0 ? NULL : name;
}

static int set_and_close(int fd, mode_t mode) {
    if (fd < 0) return -1;
    int failed = fchmod(fd, mode), error = errno;
    close(fd);
    errno = error;
    return failed;
}

static int make_directory(int parent, const char *name, mode_t mode) {
    struct stat status;
    if (!mkdirat(parent, name, mode)) return 0;
    if (errno != EEXIST) return -1;
    if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW)) return -1;
    if (!S_ISDIR(status.st_mode)) return fail(ENOTDIR);
    bool unlocked;
    return set_and_close(entry_open(parent, name, &status, &unlocked), mode);
}

static int write_and_close(int fd, const struct made_entry *entry) {
    int failed = file_write(fd, entry->data, entry->size);
    int error = errno;
    if (close(fd) && !failed) return -1;
    errno = error;
    return failed;
}

/* Always a file of its own: what stands there, be it a link or a fifo, is removed and not written to. */
static int make_file(int parent, const char *name, const struct made_entry *entry) {
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(parent, name, flags, entry->mode);
    if (fd < 0 && errno == EEXIST && !unlinkat(parent, name, 0)) fd = openat(parent, name, flags, entry->mode);
    return fd < 0 ? -1 : write_and_close(fd, entry);
}

static int make_link(int parent, const char *name, const char *target) {
    if (!symlinkat(target, parent, name)) return 0;
    return errno == EEXIST && !unlinkat(parent, name, 0) ? symlinkat(target, parent, name) : -1;
}

static int open_existing(int parent, const char *name, int flags) {
    struct stat status;
    if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW)) return -1;
    if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return fail(EINVAL);
    return openat(parent, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static int add_to_file(int parent, const char *name, const struct made_entry *entry) {
    int fd = open_existing(parent, name, O_WRONLY | O_APPEND);
    return fd < 0 ? -1 : write_and_close(fd, entry);
}

static int set_mode(int parent, const char *name, mode_t mode) {
    return set_and_close(open_existing(parent, name, O_RDONLY), mode);
}

static int make(struct place *place, const struct made_entry *entry) {
    if (!is_plain(entry->path)) return fail(EINVAL);
    const char *name = enter_parent(place, entry->path);
    if (!name) return -1;
    switch (entry->kind) {
        case MADE_DIRECTORY: return make_directory(place->parent, name, entry->mode);
        case MADE_FILE: return make_file(place->parent, name, entry);
        case MADE_MORE: return add_to_file(place->parent, name, entry);
        case MADE_LINK: return make_link(place->parent, name, (const char *)entry->data);
        case MADE_MODE: return set_mode(place->parent, name, entry->mode);
    }
    die("malformed frame: unknown entry");
}

static struct made_entry take_entry(struct frame *frame) {
    struct made_entry entry = {.kind = take_u8(frame), .mode = take_u32(frame) & 07777};
    entry.path = take_string(frame);
    if (entry.kind == MADE_LINK) entry.data = (const uint8_t *)take_string(frame);
    if (entry.kind == MADE_FILE || entry.kind == MADE_MORE) {
        entry.size = take_u32(frame);
        entry.data = take_bytes(frame, entry.size);
    }
    return entry;
}

/* Returns the path that failed, and sets errno, or NULL. All entries are parsed, whatever fails. */
static const char *make_all(struct place *place, struct frame *frame) {
    const char *failed = NULL;
    int error = 0;
    while (frame->at < frame->size) {
        struct made_entry entry = take_entry(frame);
        if (failed || !make(place, &entry)) continue;
        error = file_blame(place->parent, errno);
        failed = entry.path;
    }
    errno = error;
    return failed;
}

static int open_root(const char *root) {
    char path[PATH_MAX];
    /* The last name is made too, since it is not the end. */
    int size = snprintf(path, sizeof path, "%s/.", root);
    return size >= PATH_MAX ? fail(ENAMETOOLONG) : path_open(path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0, true);
}

void serve_unpack(struct channel *channel, struct frame *frame) {
    const char *root = take_string(frame);
    struct place place = {.root = open_root(root), .parent = -1};
    /* Modes are made as they are asked for. */
    mode_t mask = umask(0);
    const char *failed = place.root < 0 ? "" : make_all(&place, frame);
    int error = failed ? errno : 0;
    umask(mask);
    forget_parent(&place);
    if (place.root >= 0) close(place.root);
    struct buffer reply = reply_begin(frame->id, HELLO | UNPACK);
    buffer_u32(&reply, (uint32_t)error);
    if (failed) buffer_append(&reply, failed, strlen(failed));
    reply_end(channel, &reply);
}
