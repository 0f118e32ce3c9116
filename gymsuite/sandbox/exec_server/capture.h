/* One output stream of a command: its first half and its last half, in bounded memory. */
#ifndef GYMSUITE_CAPTURE_H
#define GYMSUITE_CAPTURE_H

#include <stdbool.h>

#include "base.h"

struct capture {
    struct buffer kept;
    size_t limit;
    uint64_t total;
};

/* From now on it keeps no more than that, or than it has. */
void capture_limit(struct capture *capture, size_t limit);
void capture_add(struct capture *capture, const uint8_t *data, size_t size);
bool capture_truncated(const struct capture *capture);
size_t capture_size(const struct capture *capture);
void capture_copy(const struct capture *capture, struct buffer *target);

#endif
