#include "capture.h"

#include <string.h>

/* Until `limit` bytes came, `kept` is simply all of them. After that, what lies behind the head is a ring. */
static size_t head_size(const struct capture *capture) { return capture->limit / 2; }

static void add_to_ring(struct capture *capture, const uint8_t *data, size_t size) {
    size_t head = head_size(capture), ring = capture->limit - head;
    while (size && ring) {
        size_t at = (size_t)((capture->total - head) % ring);
        size_t part = size < ring - at ? size : ring - at;
        memcpy(capture->kept.data + head + at, data, part);
        capture->total += part;
        data += part;
        size -= part;
    }
    capture->total += size;
}

void capture_limit(struct capture *capture, size_t limit) {
    if (capture->total > capture->limit || limit >= capture->limit) return;
    capture->limit = limit < capture->kept.size ? capture->kept.size : limit;
}

void capture_add(struct capture *capture, const uint8_t *data, size_t size) {
    size_t space = capture->limit - capture->kept.size;
    size_t part = size < space ? size : space;
    buffer_append(&capture->kept, data, part);
    capture->total += part;
    if (part < size) add_to_ring(capture, data + part, size - part);
}

bool capture_truncated(const struct capture *capture) { return capture->total > capture->limit; }

size_t capture_size(const struct capture *capture) { return capture->kept.size; }

void capture_copy(const struct capture *capture, struct buffer *target) {
    if (!capture_truncated(capture) || !capture->limit) {
        buffer_append(target, capture->kept.data, capture->kept.size);
        return;
    }
    size_t head = head_size(capture), ring = capture->limit - head;
    size_t at = (size_t)((capture->total - head) % ring);
    buffer_append(target, capture->kept.data, head);
    buffer_append(target, capture->kept.data + head + at, ring - at);
    buffer_append(target, capture->kept.data + head, at);
}
