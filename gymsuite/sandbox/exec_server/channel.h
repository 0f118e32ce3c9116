/* The framed channel to whoever owns the sandbox: u32 length, u32 request id, u8 type, payload. */
#ifndef GYMSUITE_CHANNEL_H
#define GYMSUITE_CHANNEL_H

#include <stdbool.h>

#include "base.h"

enum request { EXEC = 1, CANCEL = 2, READ = 3, WRITE = 4, STATS = 5, KILL_ALL = 6, STATE = 7 };
/* Of commands that are streamed, where the frame's id is the job's; INPUT, WINDOW and GONE get no reply. */
enum { SPAWN = 8, INPUT = 9, OUTPUT = 10, WINDOW = 11, EXIT = 12, KILL = 13, GONE = 14, PING = 15 };
/* Of directories: see archive.h. */
enum { WALK = 16, PACK = 17, UNPACK = 18, NEXT = 19 };
enum { HELLO = 0x80 };

/* A request whose payload is in `body`; the cursor moves as it is parsed. */
struct frame {
    uint32_t id;
    uint8_t type;
    uint8_t *body;
    size_t size;
    size_t at;
};

struct outgoing;

enum { INBOX = 64 << 10 };

struct channel {
    int in, out;
    uint8_t inbox[INBOX]; /* what came with one read, so that a short frame costs no more */
    size_t inbox_at, inbox_filled;
    bool drained; /* to be cleared when there is something to read again */
    uint8_t header[4];
    size_t header_filled;
    uint32_t length;
    struct buffer body;
    struct outgoing *first, *last;
    size_t queued; /* of replies */
};

/* Each read moves what is there: true with a whole frame, whose body the caller frees. The server
   ends when the peer is gone or breaks the protocol. */
bool channel_receive(struct channel *channel, struct frame *frame);

/* Replies are queued, so that a slow reader never stops the server. The buffer is taken over. */
struct buffer reply_begin(uint32_t id, uint8_t type);
void reply_end(struct channel *channel, struct buffer *reply);
bool channel_has_output(const struct channel *channel);
/* Whether there is more to receive without reading. */
bool channel_has_input(const struct channel *channel);
void channel_flush(struct channel *channel);

/* Parsing: every one of these ends the server when the frame does not hold what it should. */
uint8_t take_u8(struct frame *frame);
uint32_t take_u32(struct frame *frame);
uint64_t take_u64(struct frame *frame);
char *take_string(struct frame *frame);
uint8_t *take_bytes(struct frame *frame, size_t size);
uint8_t *take_rest(struct frame *frame, size_t *size);
void take_end(const struct frame *frame);

#endif
