/* What every part of the exec server shares: growing buffers, the clock, small files, and two ways to give up. */
#ifndef GYMSUITE_BASE_H
#define GYMSUITE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROTOCOL_VERSION 2u
#define MAX_FRAME (256u << 20)

struct buffer {
    uint8_t *data;
    size_t size;
    size_t room;
};

_Noreturn void die(const char *what);
_Noreturn void give_up(const char *what, const char *name); /* a keeper's process: says why, by errno */

bool write_text(const char *path, const char *text); /* into a file that is there; false with errno */

void buffer_reserve(struct buffer *buffer, size_t room);
void buffer_append(struct buffer *buffer, const void *data, size_t size);
void buffer_u8(struct buffer *buffer, uint8_t value);
void buffer_u32(struct buffer *buffer, uint32_t value);
void buffer_u64(struct buffer *buffer, uint64_t value);
void buffer_free(struct buffer *buffer);

/* Microseconds on a clock that never goes back. */
int64_t now_us(void);

#endif
