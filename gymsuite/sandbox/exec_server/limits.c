#define _GNU_SOURCE
#include "limits.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { EVENTS_BYTES = 1024, MAX_DISKS = 64, LINE_BYTES = 4096 };

static const char *const MEMORY_EVENTS[] = {"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"};
static const char *const PIDS_EVENTS[] = {"/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events"};

/* A file that an image put in the same place is no cgroup's. */
static bool is_cgroup(int fd) {
    struct statfs system;
    return !fstatfs(fd, &system) && (system.f_type == 0x63677270 || system.f_type == 0x27e0eb);
}

static int open_first(const char *const *paths, int count) {
    for (int i = 0; i < count; i++) {
        int fd = open(paths[i], O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* or a pipe in its place would be waited for */
        if (fd < 0) continue;
        if (is_cgroup(fd)) return fd;
        close(fd);
    }
    return -1;
}

static int given_or_usual(int fd, const char *const *paths, int count) {
    if (fd < 0) return open_first(paths, count);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

/* A directory on another file system than that one. */
static int open_other(const char *path, int directory) {
    struct stat here, there;
    int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &here) || fstat(directory, &there) || here.st_dev != there.st_dev) return fd;
    close(fd);
    return -1;
}

struct limits limits_open(int memory, int pids) {
    struct limits limits = {given_or_usual(memory, MEMORY_EVENTS, 2), given_or_usual(pids, PIDS_EVENTS, 2), -1, -1};
    limits.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    limits.tmp = open_other("/tmp", limits.root);
    return limits;
}

/* The number in the line that starts with `name`. */
static uint64_t event(int fd, const char *name) {
    char text[EVENTS_BYTES];
    ssize_t size = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
    if (size <= 0) return 0;
    text[size] = 0;
    for (char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
        if (!strncmp(line, name, strlen(name))) return strtoull(line + strlen(name), NULL, 10);
    return 0;
}

struct events limits_events(const struct limits *limits) {
    return (struct events){event(limits->memory_events, "oom_kill "), event(limits->pids_events, "max ")};
}

static bool full(const struct statfs *disk) {
    return disk->f_blocks && (!disk->f_bavail || (disk->f_files && !disk->f_ffree));
}

static bool directory_full(int fd) {
    struct statfs disk;
    return fd >= 0 && !fstatfs(fd, &disk) && full(&disk);
}

bool limits_disk_full(const struct limits *limits, const char *cwd) {
    struct statfs disk;
    return directory_full(limits->root) || directory_full(limits->tmp) || (!statfs(cwd, &disk) && full(&disk));
}

static uint64_t used(const char *path) {
    struct statfs disk;
    if (statfs(path, &disk) || disk.f_blocks < disk.f_bfree) return 0;
    return (disk.f_blocks - disk.f_bfree) * (uint64_t)disk.f_bsize;
}

uint64_t limits_root_files(void) { return used("/"); }

/* ID PARENT MAJOR:MINOR ROOT PLACE OPTIONS... - TYPE ...; a place with a space in it is written as \040, and is missed. */
uint64_t limits_memory_files(void) {
    char line[LINE_BYTES], place[LINE_BYTES], options[16];
    unsigned numbers[2], seen[MAX_DISKS];
    int count = 0;
    uint64_t sum = 0;
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    if (!mounts) return 0;
    while (count < MAX_DISKS && fgets(line, sizeof line, mounts)) {
        const char *type = strstr(line, " - tmpfs ");
        if (!type || sscanf(line, "%*d %*d %u:%u %*s %4095s %15s", &numbers[0], &numbers[1], place, options) != 4) continue;
        if (strncmp(options, "rw", 2) || !strcmp(place, "/dev")) continue;
        seen[count] = makedev(numbers[0], numbers[1]);
        int first = 0;
        while (seen[first] != seen[count]) first++;
        if (first < count) continue;
        sum += used(place);
        count++;
    }
    fclose(mounts);
    return sum;
}
