#include "tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"

enum { FREEZE_PASSES = 8, CROWD = 64 };

struct process {
    pid_t pid, parent;
    char state;
    bool below;
    uint64_t ticks;
};

struct census {
    struct process *all;
    size_t count, room;
};

/* The name of a process may hold anything, so the fields are counted from its last parenthesis. */
static bool parse_stat(const char *text, struct process *process) {
    const char *end = strrchr(text, ')');
    unsigned long user, system;
    long child_user, child_system;
    if (!end) return false;
    int fields = sscanf(end + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld", &process->state,
                        &process->parent, &user, &system, &child_user, &child_system);
    process->ticks = user + system + (uint64_t)child_user + (uint64_t)child_system;
    return fields == 6;
}

static bool read_stat(int proc, const char *name, struct process *process) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "%.32s/stat", name);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    if (size <= 0) return false;
    text[size] = 0;
    *process = (struct process){.pid = atoi(name)};
    return parse_stat(text, process);
}

static void census_add(struct census *census, struct process process) {
    if (census->count == census->room) {
        census->room = census->room ? census->room * 2 : 64;
        census->all = realloc(census->all, census->room * sizeof *census->all);
        if (!census->all) die("out of memory");
    }
    census->all[census->count++] = process;
}

static struct census take_census(void) {
    struct census census = {0};
    DIR *proc = opendir("/proc");
    if (!proc) return census;
    struct dirent *entry;
    while ((entry = readdir(proc))) {
        struct process process;
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
        if (read_stat(dirfd(proc), entry->d_name, &process) && process.pid != 1) census_add(&census, process);
    }
    closedir(proc);
    return census;
}

static bool is_below(const struct census *census, pid_t pid) {
    size_t low = 0, high = census->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (census->all[middle].pid == pid) return census->all[middle].below;
        if (census->all[middle].pid < pid) low = middle + 1;
        else high = middle;
    }
    return false;
}

/* Parents mostly come before their children, so one or two passes settle it. */
static void mark_below(struct census *census, pid_t root) {
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < census->count; i++) {
            struct process *process = &census->all[i];
            if (process->below || (process->parent != root && !is_below(census, process->parent))) continue;
            process->below = changed = true;
        }
    }
}

static size_t signal_below(const struct census *census, int signal) {
    size_t awake = 0;
    for (size_t i = 0; i < census->count; i++) {
        const struct process *process = &census->all[i];
        if (!process->below) continue;
        if (signal == SIGSTOP && strchr("TtZX", process->state)) continue;
        kill(process->pid, signal);
        awake++;
    }
    return awake;
}

/* A process to which a signal is on its way cannot fork, so one look at a world that was stopped at
   once is enough, however fast it forked. Others only notice if they wait for a child to stop. */
static void kill_in_frozen_world(pid_t root) {
    kill(-1, SIGSTOP);
    struct census census = take_census();
    mark_below(&census, root);
    signal_below(&census, SIGKILL);
    for (size_t i = 0; i < census.count; i++)
        if (!census.all[i].below) kill(census.all[i].pid, SIGCONT);
    free(census.all);
}

/* What is frozen cannot fork away from the kill that follows. */
void tree_kill(pid_t root, bool alone) {
    if (alone) {
        kill_in_frozen_world(root);
        return;
    }
    for (int pass = 0; pass < FREEZE_PASSES; pass++) {
        struct census census = take_census();
        if (census.count > CROWD) {
            free(census.all);
            kill_in_frozen_world(root);
            return;
        }
        mark_below(&census, root);
        size_t awake = signal_below(&census, SIGSTOP);
        if (!awake || pass == FREEZE_PASSES - 1) signal_below(&census, SIGKILL);
        free(census.all);
        if (!awake) return;
    }
}

size_t tree_population(void) {
    struct census census = take_census();
    free(census.all);
    return census.count;
}

uint64_t tree_cpu_us(void) {
    struct census census = take_census();
    uint64_t ticks = 0;
    for (size_t i = 0; i < census.count; i++) ticks += census.all[i].ticks;
    free(census.all);
    return ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}
