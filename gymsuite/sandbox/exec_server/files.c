#define _GNU_SOURCE
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "paths.h"

enum { CHUNK = 256 << 10 };

static bool on_own_disk(int fd) {
    struct statfs here, disk;
    return fstatfs(fd, &here) || statfs("/", &disk) || here.f_type == disk.f_type;
}

int file_blame(int fd, int error) {
    if ((error == EIO || error == ENOMEM) && fd >= 0 && !on_own_disk(fd)) return EINVAL;
    return error;
}

/* Files under /proc say that they are empty, so the size is a hint and the end of the file the truth. */
static int read_all(int fd, size_t limit, size_t hint, struct buffer *reply) {
    size_t start = reply->size;
    buffer_reserve(reply, start + (hint < limit ? hint : limit) + 1);
    for (;;) {
        size_t done = reply->size - start;
        if (done > limit) return READ_TOO_LARGE;
        size_t wanted = limit + 1 - done < CHUNK ? limit + 1 - done : CHUNK;
        buffer_reserve(reply, reply->size + wanted);
        ssize_t got = read(fd, reply->data + reply->size, wanted);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return READ_FAILED;
        if (!got) return READ_OK;
        reply->size += (size_t)got;
    }
}

/* What is no file, as opposed to one that cannot be read now. */
static bool is_absence(int error) {
    switch (error) {
        case ENOENT:
        case ENOTDIR:
        case ELOOP:
        case ENAMETOOLONG:
        case EINVAL:
        case ENXIO:
        case ENODEV: return true;
        default: return false;
    }
}

static int read_file(const char *path, size_t limit, struct buffer *reply) {
    /* A fifo or a device must not block the server: it is opened without waiting, and refused. */
    int fd = path_open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0, false);
    if (fd < 0) return is_absence(errno) ? READ_ABSENT : READ_FAILED;
    struct stat status;
    int result;
    if (fstat(fd, &status) || !S_ISREG(status.st_mode)) result = READ_ABSENT;
    else if (status.st_size > 0 && (uint64_t)status.st_size > limit) result = READ_TOO_LARGE;
    else result = read_all(fd, limit, (size_t)status.st_size, reply);
    int error = result == READ_FAILED ? file_blame(fd, errno) : 0;
    close(fd);
    errno = error;
    return result;
}

static int read_link(const char *path, size_t limit, struct buffer *reply) {
    buffer_reserve(reply, reply->size + PATH_MAX);
    ssize_t size = readlink(path, (char *)reply->data + reply->size, PATH_MAX);
    if (size < 0) return READ_FAILED;
    reply->size += (size_t)size;
    return (size_t)size > limit ? READ_TOO_LARGE : READ_OK;
}

static int read_state(char *path, size_t limit, struct buffer *reply, uint32_t *mode) {
    struct stat status;
    int failed = lstat(path, &status);
    if (failed && errno == EACCES && *path == '/') {
        path_unlock_parents(path);
        failed = lstat(path, &status);
    }
    if (failed) return errno == ENOENT || errno == ENOTDIR ? READ_ABSENT : READ_FAILED;
    *mode = status.st_mode;
    if (S_ISLNK(status.st_mode)) return read_link(path, limit, reply);
    if (!S_ISREG(status.st_mode)) return READ_ABSENT;
    /* What its owner may not read would otherwise be hidden from whoever judges it. */
    if (!(status.st_mode & S_IRUSR)) chmod(path, (status.st_mode & 07777) | S_IRUSR);
    return read_file(path, limit, reply);
}

/* The status and the errno of a reply come before its data, and are known after. */
static void finish_read(struct channel *channel, struct buffer *reply, size_t status_at, int result) {
    uint32_t error = result == READ_FAILED ? (uint32_t)errno : 0;
    reply->data[status_at] = (uint8_t)result;
    memcpy(reply->data + status_at + 1, &error, sizeof error);
    reply_end(channel, reply);
}

void serve_read(struct channel *channel, struct frame *frame) {
    uint32_t limit = take_u32(frame);
    const char *path = take_string(frame);
    take_end(frame);
    if (limit > MAX_FRAME / 2) die("malformed frame: the read is too large");
    struct buffer reply = reply_begin(frame->id, HELLO | READ);
    size_t status_at = reply.size;
    buffer_u8(&reply, READ_OK);
    buffer_u32(&reply, 0);
    size_t data_at = reply.size;
    int result = read_file(path, limit, &reply);
    if (result != READ_OK) reply.size = data_at;
    finish_read(channel, &reply, status_at, result);
}

void serve_state(struct channel *channel, struct frame *frame) {
    uint32_t limit = take_u32(frame);
    char *path = take_string(frame);
    take_end(frame);
    if (limit > MAX_FRAME / 2) die("malformed frame: the read is too large");
    struct buffer reply = reply_begin(frame->id, HELLO | STATE);
    size_t status_at = reply.size;
    buffer_u8(&reply, READ_OK);
    buffer_u32(&reply, 0);
    size_t mode_at = reply.size;
    uint32_t mode = 0;
    buffer_u32(&reply, mode);
    size_t data_at = reply.size;
    int result = read_state(path, limit, &reply, &mode);
    if (result != READ_OK) reply.size = data_at;
    memcpy(reply.data + mode_at, &mode, sizeof mode);
    finish_read(channel, &reply, status_at, result);
}

int file_write(int fd, const uint8_t *data, size_t size) {
    while (size) {
        ssize_t done = write(fd, data, size);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return -1;
        data += done;
        size -= (size_t)done;
    }
    return 0;
}

static int fill_file(int fd, mode_t mode, const uint8_t *data, size_t size) {
    struct stat status;
    if (fstat(fd, &status)) return -1;
    if (!S_ISREG(status.st_mode) || path_is_made_up(fd)) {
        errno = EINVAL;
        return -1;
    }
    return ftruncate(fd, 0) || file_write(fd, data, size) || fchmod(fd, mode) ? -1 : 0;
}

static int write_file(const char *path, mode_t mode, const uint8_t *data, size_t size) {
    int flags = O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
    int fd = path_open(path, flags, mode, true);
    if (fd < 0) return file_blame(fd, errno);
    int error = fill_file(fd, mode, data, size) ? file_blame(fd, errno) : 0;
    if (close(fd) && !error) error = errno;
    return error;
}

void serve_write(struct channel *channel, struct frame *frame) {
    uint32_t mode = take_u32(frame);
    const char *path = take_string(frame);
    size_t size;
    const uint8_t *data = take_rest(frame, &size);
    struct buffer reply = reply_begin(frame->id, HELLO | WRITE);
    buffer_u32(&reply, (uint32_t)write_file(path, mode & 07777, data, size));
    reply_end(channel, &reply);
}
