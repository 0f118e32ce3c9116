/* User namespaces, with one user or with many. */
#ifndef GYMSUITE_USERS_H
#define GYMSUITE_USERS_H

#include <stdbool.h>
#include <sys/types.h>

/* For the machine's root: root inside is `uid` and `gid` outside, who may enter it, and the others follow on from `first`.
   Returns a descriptor, or -1 with errno. */
int users_make(uid_t uid, gid_t gid, unsigned first, unsigned count);

/* For whoever may not make sandboxes: makes and enters one in which that is allowed. Its users keep their numbers; an ordinary user's
   has no other. */
void users_enter_own(void);

/* Enters that one, or, given -1, makes and enters one whose only user is root. In either, no more of them can be made but
   by `users_become`, for which `another` leaves room. */
void users_enter(int users, bool another);

/* Makes and enters one in which root has other numbers. */
void users_become(unsigned uid, unsigned gid);

#endif
