/* Opens paths inside the sandbox one name at a time. A link is followed by its text only: one of
   /proc's, which would lead to whatever a process holds open, leads to what its text names instead. */
#ifndef GYMSUITE_PATHS_H
#define GYMSUITE_PATHS_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* As open(2), for an absolute path. `make` makes the directories that are missing on the way. */
int path_open(const char *path, int flags, mode_t mode, bool make);

/* What the kernel makes up there is no part of the sandbox's files, and may be a setting of the server itself. */
bool path_is_made_up(int fd);

/* What its owner may not enter is entered all the same: nobody hides behind a mode. */
void path_unlock(const char *path);
void path_unlock_parents(char *path);

/* Opens a directory or a file in `parent`, without links and without waiting, also where its mode forbids
   that to its owner. A directory keeps the mode that lets it be entered: `unlocked` says so. */
int entry_open(int parent, const char *name, const struct stat *status, bool *unlocked);
/* Gives back the mode that entry_open changed. */
void entry_lock(int fd, mode_t mode);

#endif
