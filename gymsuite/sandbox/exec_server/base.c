#define _GNU_SOURCE
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

_Noreturn void die(const char *what) {
    dprintf(STDERR_FILENO, "exec server: %s\n", what);
    _exit(70);
}

void buffer_reserve(struct buffer *buffer, size_t room) {
    if (room <= buffer->room) return;
    size_t grown = buffer->room * 2 > room ? buffer->room * 2 : room;
    uint8_t *data = realloc(buffer->data, grown);
    if (!data) die("out of memory");
    buffer->data = data;
    buffer->room = grown;
}

void buffer_append(struct buffer *buffer, const void *data, size_t size) {
    if (!size) return;
    buffer_reserve(buffer, buffer->size + size);
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
}

void buffer_u8(struct buffer *buffer, uint8_t value) { buffer_append(buffer, &value, sizeof value); }

void buffer_u32(struct buffer *buffer, uint32_t value) { buffer_append(buffer, &value, sizeof value); }

void buffer_u64(struct buffer *buffer, uint64_t value) { buffer_append(buffer, &value, sizeof value); }

void buffer_free(struct buffer *buffer) {
    free(buffer->data);
    *buffer = (struct buffer){0};
}

int64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

_Noreturn void give_up(const char *what, const char *name) {
    dprintf(STDERR_FILENO, "keeper: %s %s: %s\n", what, name, strerror(errno));
    _exit(70);
}

bool write_text(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    int error = errno;
    close(fd);
    errno = error;
    return done;
}
