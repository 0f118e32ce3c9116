#include "command.h"

#include <stdlib.h>

/* Each string takes five bytes at least, so a count cannot ask for more memory than the frame has. */
static uint32_t take_count(struct frame *frame) {
    uint32_t count = take_u32(frame);
    if (count > frame->size / 5) die("malformed frame: too many strings");
    return count;
}

static void skip_strings(struct frame *frame, uint32_t count) {
    while (count--) take_string(frame);
}

const char *command_take(struct frame *frame, struct command *command) {
    const char *user = take_string(frame);
    size_t start = frame->at;
    take_string(frame);
    uint32_t count = take_count(frame);
    if (!count) die("malformed frame: no command");
    skip_strings(frame, count);
    skip_strings(frame, take_count(frame));
    command->text = frame->body + start;
    command->size = frame->at - start;
    return user;
}

static char **take_strings(struct frame *frame) {
    uint32_t count = take_count(frame);
    char **strings = calloc(count + 1, sizeof *strings);
    if (!strings) die("out of memory");
    for (uint32_t i = 0; i < count; i++) strings[i] = take_string(frame);
    return strings;
}

struct words command_words(const struct command *command) {
    struct frame frame = {.body = command->text, .size = command->size};
    struct words words = {.cwd = take_string(&frame)};
    words.argv = take_strings(&frame);
    words.env = take_strings(&frame);
    return words;
}

const char *command_cwd(const struct command *command) {
    struct frame frame = {.body = command->text, .size = command->size};
    return take_string(&frame);
}
