/* Mounts as descriptors: what the C library does not name everywhere. */
#ifndef GYMSUITE_MOUNTS_H
#define GYMSUITE_MOUNTS_H

#include <stdbool.h>

enum { READ_ONLY = 1, NO_SUID = 2, NO_DEVICES = 4, NO_EXEC = 8 }; /* as the kernel numbers them */

/* A copy that is mounted nowhere: the source need not be reachable any more when it is attached. Returns -1 with errno. */
int mounts_copy(const char *path, bool with_those_below);

/* A new file system that is mounted nowhere. Returns -1 with errno. */
int mounts_new(const char *type, unsigned flags);

bool mounts_attach(int tree, const char *path); /* where a link leads */
bool mounts_cover(int tree, const char *path);  /* over the link itself */
bool mounts_restrict(int tree, unsigned flags); /* with all below */
bool mounts_restrict_at(const char *path, unsigned flags);

#endif
