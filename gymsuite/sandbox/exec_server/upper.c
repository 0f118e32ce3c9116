#include "upper.h"

#include <limits.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static bool make(const char *path, const char *name, mode_t mode, uid_t uid, gid_t gid) {
    char made[PATH_MAX];
    snprintf(made, sizeof made, "%.200s/%.20s", path, name);
    return !mkdir(made, mode) && !chown(made, uid, gid);
}

bool upper_mount(const char *path, const char *bytes, const char *inodes, uid_t uid, gid_t gid) {
    char options[128];
    snprintf(options, sizeof options, "mode=755,size=%.24s,nr_inodes=%.24s", bytes, inodes);
    return !mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options) && make(path, "empty", 0555, (uid_t)-1, (gid_t)-1) &&
           make(path, "upper", 0755, uid, gid) && make(path, "work", 0755, uid, gid);
}
