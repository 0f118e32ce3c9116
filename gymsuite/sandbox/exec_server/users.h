/* A user namespace with more than one user in it, which only the machine's root can make. */
#ifndef GYMSUITE_USERS_H
#define GYMSUITE_USERS_H

#include <sys/types.h>

/* Root inside is `uid` and `gid` outside, who may enter it, and the others follow on from `first`. Returns a descriptor,
   or -1 with errno. */
int users_make(uid_t uid, gid_t gid, unsigned first, unsigned count);

#endif
