#include "base.h"

#include <errno.h>
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
