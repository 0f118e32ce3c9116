#define _GNU_SOURCE
#include "mounts.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OPEN_TREE = 428, MOVE_MOUNT = 429, FSOPEN = 430, FSCONFIG = 431, FSMOUNT = 432, MOUNT_SETATTR = 442 };
enum { CLONE_TREE = 1, FROM_DESCRIPTOR = 0x4, FOLLOW_TARGET = 0x10, CLOSE_ON_EXEC = 1, CREATE = 6, RECURSIVE = 0x8000 };

struct attributes {
    uint64_t set, clear, propagation, users;
};

int mounts_copy(const char *path, bool with_those_below) {
    return (int)syscall(OPEN_TREE, AT_FDCWD, path, CLONE_TREE | O_CLOEXEC | (with_those_below ? RECURSIVE : 0));
}

int mounts_new(const char *type, unsigned flags) {
    int context = (int)syscall(FSOPEN, type, CLOSE_ON_EXEC), tree = -1;
    if (context < 0) return -1;
    if (!syscall(FSCONFIG, context, CREATE, NULL, NULL, 0)) tree = (int)syscall(FSMOUNT, context, CLOSE_ON_EXEC, flags);
    close(context);
    return tree;
}

bool mounts_attach(int tree, const char *path) {
    return !syscall(MOVE_MOUNT, tree, "", AT_FDCWD, path, FROM_DESCRIPTOR | FOLLOW_TARGET);
}

bool mounts_cover(int tree, const char *path) {
    return !syscall(MOVE_MOUNT, tree, "", AT_FDCWD, path, FROM_DESCRIPTOR);
}

bool mounts_restrict(int tree, unsigned flags) {
    /* What is mounted below its source later would show here, too, and not be restricted. */
    struct attributes attributes = {.set = flags, .propagation = MS_PRIVATE};
    return !syscall(MOUNT_SETATTR, tree, "", AT_EMPTY_PATH | RECURSIVE, &attributes, sizeof attributes);
}

bool mounts_restrict_at(const char *path, unsigned flags) {
    struct attributes attributes = {.set = flags};
    return !syscall(MOUNT_SETATTR, AT_FDCWD, path, 0, &attributes, sizeof attributes);
}
