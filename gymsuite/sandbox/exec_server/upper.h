/* A file system in memory for what one sandbox writes. */
#ifndef GYMSUITE_UPPER_H
#define GYMSUITE_UPPER_H

#include <stdbool.h>
#include <sys/types.h>

/* Mounts it on a directory, with the directories `upper` and `work` of an overlay, for a user, and an empty one. */
bool upper_mount(const char *path, const char *bytes, const char *inodes, uid_t uid, gid_t gid);

#endif
