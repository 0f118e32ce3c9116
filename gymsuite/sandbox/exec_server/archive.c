#include "archive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "walk.h"

enum { MOST = 64 };

/* A walk that goes on, by the id of its first frame. */
struct archive {
    struct archive *next;
    uint32_t id;
    struct walk *walk;
};

static struct buffer answer_begin(const struct frame *frame, uint32_t id) {
    struct buffer reply = reply_begin(frame->id, HELLO | frame->type);
    buffer_u8(&reply, WALK_MORE);
    buffer_u32(&reply, 0);
    buffer_u32(&reply, id);
    return reply;
}

static void answer_end(struct channel *channel, struct buffer *reply, enum walk_state state, int error) {
    uint32_t code = (uint32_t)error;
    reply->data[9] = (uint8_t)state;
    memcpy(reply->data + 10, &code, sizeof code);
    reply_end(channel, reply);
}

static struct archive **find(struct archive **archives, uint32_t id) {
    while (*archives && (*archives)->id != id) archives = &(*archives)->next;
    return archives;
}

static void drop(struct archive **link) {
    struct archive *archive = *link;
    *link = archive->next;
    walk_free(archive->walk);
    free(archive);
}

static void hold(struct archive **archives, uint32_t id, struct walk *walk) {
    struct archive *archive = malloc(sizeof *archive), **link = archives;
    if (!archive) die("out of memory");
    *archive = (struct archive){*archives, id, walk};
    *archives = archive;
    /* Whoever asked for the oldest may be gone without a word. */
    for (size_t count = 0; *link; count++) {
        if (count >= MOST) drop(link);
        else link = &(*link)->next;
    }
}

void archive_start(struct archive **archives, struct channel *channel, struct frame *frame) {
    struct walk_wish wish = {.contents = frame->type == PACK};
    wish.entries = take_u32(frame);
    wish.bytes = take_u64(frame);
    char *path = take_string(frame);
    take_end(frame);
    if (*find(archives, frame->id)) die("malformed frame: the id is in use");
    struct buffer reply = answer_begin(frame, frame->id);
    struct walk *walk = walk_open(path, wish);
    int error = walk ? 0 : errno;
    enum walk_state state = walk ? walk_piece(walk, &reply) : WALK_FAILED;
    answer_end(channel, &reply, state, error);
    if (state == WALK_MORE) hold(archives, frame->id, walk);
    else if (walk) walk_free(walk);
}

void archive_next(struct archive **archives, struct channel *channel, struct frame *frame) {
    uint32_t id = take_u32(frame);
    take_end(frame);
    struct archive **link = find(archives, id);
    struct buffer reply = answer_begin(frame, id);
    enum walk_state state = *link ? walk_piece((*link)->walk, &reply) : WALK_FAILED;
    answer_end(channel, &reply, state, *link ? 0 : ESTALE);
    if (*link && state != WALK_MORE) drop(link);
}

void archive_cancel(struct archive **archives, uint32_t id) {
    struct archive **link = find(archives, id);
    if (*link) drop(link);
}
