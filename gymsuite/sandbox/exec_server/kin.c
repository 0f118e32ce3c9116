#define _GNU_SOURCE
#include "kin.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static FILE *children(pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    return fopen(path, "re");
}

void kin_kill(pid_t parent, bool force) {
    FILE *list = children(parent);
    int pid, found = 0;
    for (; list && fscanf(list, "%d", &pid) == 1; found++) kill(pid, SIGKILL);
    if (list) fclose(list);
    if (!found || force) kill(parent, SIGKILL);
}

bool kin_kill_strays(bool (*known)(pid_t, void *), void *data) {
    FILE *list = children(getpid());
    int pid;
    bool found = false;
    while (list && fscanf(list, "%d", &pid) == 1) {
        if (known(pid, data)) continue;
        kill(pid, SIGKILL);
        found = true;
    }
    if (list) fclose(list);
    return found;
}
