#define _GNU_SOURCE
#include "scene.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static _Noreturn void misuse(const char *word) {
    errno = EINVAL;
    give_up("cannot use", word);
}

static const char *text(struct message *message) {
    const char *word = message_next(message);
    if (!word) misuse("a message that ends early");
    return word;
}

static unsigned number(struct message *message) { return (unsigned)strtoul(text(message), NULL, 10); }

static void add_piece(struct scene *scene, struct message *message, enum kind kind) {
    if (scene->piece_count == MAX_PIECES) misuse("so many layers and binds");
    const char *source = text(message), *target = kind == BIND ? text(message) : NULL;
    scene->pieces[scene->piece_count++] = (struct piece){kind, source, target, -1};
}

static void add_mask(struct scene *scene, struct message *message, bool closed) {
    if (scene->mask_count == MAX_PIECES) misuse("so many masks");
    scene->masks[scene->mask_count++] = (struct mask){closed, text(message)};
}

static void add_event(struct scene *scene, struct message *message) {
    if (scene->event_count == MAX_EVENTS) misuse("so many events");
    int fd = (int)number(message), hierarchy = (int)number(message);
    scene->events[scene->event_count++] = (struct event){fd, hierarchy, text(message), -1};
}

static void take_pair(struct message *message, const char **first, const char **second) {
    *first = text(message);
    *second = text(message);
}

static void take_numbers(struct message *message, unsigned *first, unsigned *second) {
    *first = number(message);
    *second = number(message);
}

static void limit(struct message *message) {
    int resource = (int)number(message);
    rlim_t value = strtoull(text(message), NULL, 10);
    struct rlimit limit = {value, value};
    if (setrlimit((__rlimit_resource_t)resource, &limit)) give_up("cannot set", "a resource limit");
}

void scene_read(struct scene *scene, struct message *message) {
    while (strcmp(text(message), "--")) continue;
    for (const char *word; !scene->serve && (word = message_next(message));) {
        if (!strcmp(word, "layer")) add_piece(scene, message, LAYER);
        else if (!strcmp(word, "kept")) add_piece(scene, message, KEPT);
        else if (!strcmp(word, "bind")) add_piece(scene, message, BIND);
        else if (!strcmp(word, "empty")) add_mask(scene, message, false);
        else if (!strcmp(word, "closed")) add_mask(scene, message, true);
        else if (!strcmp(word, "event")) add_event(scene, message);
        else if (!strcmp(word, "limit")) limit(message);
        else if (!strcmp(word, "network")) scene->network = true;
        else if (!strcmp(word, "users")) take_numbers(message, &scene->first, &scene->count);
        else if (!strcmp(word, "account")) take_numbers(message, &scene->uid, &scene->gid);
        else if (!strcmp(word, "scratch")) scene->scratch = text(message);
        else if (!strcmp(word, "upper")) take_pair(message, &scene->upper_bytes, &scene->upper_inodes);
        else if (!strcmp(word, "shm")) take_pair(message, &scene->shared_bytes, &scene->shared_inodes);
        else if (!strcmp(word, "workdir")) scene->workdir = text(message);
        else if (!strcmp(word, "serve")) scene->serve = message->words + message->at - 1;
        else misuse(word);
    }
    if (!scene->serve) misuse("a message that does not say what to serve");
    *--scene->serve = SERVER;
    if (!scene->shared_bytes || (!scene->upper_bytes && !scene->scratch)) misuse("a message that says of no place to write to");
}
