#include "channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FRAME_HEAD = 5, FIRST_READ = 64 << 10 };

struct outgoing {
    struct outgoing *next;
    struct buffer buffer;
    size_t sent;
};

/* How many bytes came: 0 when there is nothing now. Never returns once the peer is gone. */
static size_t receive_now(const struct channel *channel, void *target, size_t size) {
    ssize_t got = read(channel->in, target, size);
    if (got > 0) return (size_t)got;
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    _exit(0);
}

static size_t receive(struct channel *channel, void *target, size_t size) {
    if (channel->inbox_at == channel->inbox_filled) {
        if (size >= INBOX) return receive_now(channel, target, size);
        /* A read that brought less than it could took all there was; poll tells when there is more. */
        if (channel->drained) return 0;
        channel->inbox_at = 0;
        channel->inbox_filled = receive_now(channel, channel->inbox, INBOX);
        channel->drained = channel->inbox_filled < INBOX;
    }
    size_t part = channel->inbox_filled - channel->inbox_at;
    if (part > size) part = size;
    memcpy(target, channel->inbox + channel->inbox_at, part);
    channel->inbox_at += part;
    return part;
}

static bool receive_header(struct channel *channel) {
    size_t missing = sizeof channel->header - channel->header_filled;
    if (!missing) return true;
    channel->header_filled += receive(channel, channel->header + channel->header_filled, missing);
    if (channel->header_filled < sizeof channel->header) return false;
    memcpy(&channel->length, channel->header, sizeof channel->length);
    if (channel->length < FRAME_HEAD || channel->length > MAX_FRAME) die("malformed frame length");
    return true;
}

bool channel_receive(struct channel *channel, struct frame *frame) {
    struct buffer *body = &channel->body;
    if (!receive_header(channel)) return false;
    /* Memory follows the bytes that arrived, not the length that was announced. */
    size_t wanted = channel->length - body->size;
    buffer_reserve(body, body->size + (wanted < FIRST_READ ? wanted : FIRST_READ));
    size_t space = body->room - body->size;
    body->size += receive(channel, body->data + body->size, wanted < space ? wanted : space);
    if (body->size < channel->length) return false;
    memcpy(&frame->id, body->data, sizeof frame->id);
    frame->type = body->data[4];
    frame->body = body->data;
    frame->size = body->size;
    frame->at = FRAME_HEAD;
    *body = (struct buffer){0};
    channel->header_filled = 0;
    return true;
}

struct buffer reply_begin(uint32_t id, uint8_t type) {
    struct buffer reply = {0};
    buffer_reserve(&reply, 64);
    buffer_u32(&reply, 0);
    buffer_u32(&reply, id);
    buffer_u8(&reply, type);
    return reply;
}

void reply_end(struct channel *channel, struct buffer *reply) {
    uint32_t length = (uint32_t)(reply->size - sizeof length);
    memcpy(reply->data, &length, sizeof length);
    struct outgoing *item = calloc(1, sizeof *item);
    if (!item) die("out of memory");
    item->buffer = *reply;
    channel->queued += reply->size;
    *reply = (struct buffer){0};
    if (channel->last) channel->last->next = item;
    else channel->first = item;
    channel->last = item;
    channel_flush(channel);
}

bool channel_has_output(const struct channel *channel) { return channel->first != NULL; }

bool channel_has_input(const struct channel *channel) { return channel->inbox_at < channel->inbox_filled; }

void channel_flush(struct channel *channel) {
    struct outgoing *item;
    while ((item = channel->first)) {
        ssize_t sent = write(channel->out, item->buffer.data + item->sent, item->buffer.size - item->sent);
        if (sent < 0) {
            if (errno == EAGAIN || errno == EINTR) return;
            _exit(0);
        }
        item->sent += (size_t)sent;
        if (item->sent < item->buffer.size) continue;
        channel->queued -= item->buffer.size;
        channel->first = item->next;
        if (!channel->first) channel->last = NULL;
        buffer_free(&item->buffer);
        free(item);
    }
}

uint8_t *take_bytes(struct frame *frame, size_t size) {
    if (size > frame->size - frame->at) die("malformed frame: it is too short");
    uint8_t *data = frame->body + frame->at;
    frame->at += size;
    return data;
}

uint8_t take_u8(struct frame *frame) { return *take_bytes(frame, 1); }

uint32_t take_u32(struct frame *frame) {
    uint32_t value;
    memcpy(&value, take_bytes(frame, sizeof value), sizeof value);
    return value;
}

uint64_t take_u64(struct frame *frame) {
    uint64_t value;
    memcpy(&value, take_bytes(frame, sizeof value), sizeof value);
    return value;
}

/* A string is sent with its final NUL, so that it can be used where it lies. */
char *take_string(struct frame *frame) {
    uint32_t size = take_u32(frame);
    char *text = (char *)take_bytes(frame, size);
    if (!size || memchr(text, 0, size) != text + size - 1) die("malformed frame: not a string");
    return text;
}

uint8_t *take_rest(struct frame *frame, size_t *size) {
    *size = frame->size - frame->at;
    return take_bytes(frame, *size);
}

void take_end(const struct frame *frame) {
    if (frame->at != frame->size) die("malformed frame: it is too long");
}
