#define _GNU_SOURCE
#include "groups.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base.h"

enum { PATIENCE = 20 };

static const char *path_of(const struct groups *groups, int number, int hierarchy, const char *file) {
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%.3800s/%d/%.200s", groups->bases[hierarchy], number, file);
    return path;
}

bool groups_make(const struct groups *groups, int number) {
    for (int i = 0; i < groups->count; i++)
        if (mkdir(path_of(groups, number, i, ""), 0755)) return false;
    return true;
}

void groups_divide(const char *base) {
    static const char *const controllers[] = {"+memory", "+pids", "+cpu"};
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.3800s/cgroup.subtree_control", base);
    for (size_t i = 0; i < sizeof controllers / sizeof *controllers; i++) write_text(path, controllers[i]);
}

bool groups_set(const struct groups *groups, int number, int hierarchy, const char *file, const char *value) {
    if (hierarchy < 0 || hierarchy >= groups->count) {
        errno = EINVAL;
        return false;
    }
    return write_text(path_of(groups, number, hierarchy, file), value);
}

bool groups_join(const struct groups *groups, int number) {
    for (int i = 0; i < groups->count; i++)
        if (!groups_set(groups, number, i, "cgroup.procs", "0")) return false;
    return true;
}

int groups_open(const struct groups *groups, int number, int hierarchy, const char *file) {
    if (hierarchy < 0 || hierarchy >= groups->count) return -1;
    return open(path_of(groups, number, hierarchy, file), O_RDONLY | O_CLOEXEC);
}

/* A process that has just been reaped can be counted for a moment more. */
void groups_remove(const struct groups *groups, int number) {
    const struct timespec moment = {0, 1000000};
    for (int i = 0; i < groups->count; i++)
        for (int tries = 0; rmdir(path_of(groups, number, i, "")) && errno == EBUSY && tries < PATIENCE; tries++)
            nanosleep(&moment, NULL);
}
