#define _GNU_SOURCE
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

enum { MOST_LINKS = 40, STEP = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* What is still to be walked: the text from `at` on. */
struct rest {
    char text[2 * PATH_MAX];
    char *at;
};

static int fail(int error) {
    errno = error;
    return -1;
}

/* The next name, and whether it is the last: one with a slash behind it has to be a directory. */
static int next_name(struct rest *rest, char name[NAME_MAX + 1], bool *last) {
    rest->at += strspn(rest->at, "/");
    size_t size = strcspn(rest->at, "/");
    if (size > NAME_MAX) return fail(ENAMETOOLONG);
    memcpy(name, rest->at, size);
    name[size] = 0;
    rest->at += size;
    *last = !*rest->at;
    return 0;
}

/* Puts the text of a link before the rest: 1 when there is one, 0 when the name is no link. */
static int take_link(struct rest *rest, int directory, const char *name) {
    char text[2 * PATH_MAX];
    ssize_t size = readlinkat(directory, name, text, PATH_MAX);
    if (size < 0) return errno == EINVAL ? 0 : -1;
    if (size == 0 || size == PATH_MAX) return fail(ENAMETOOLONG);
    size_t left = strlen(rest->at);
    if ((size_t)size + left >= sizeof text) return fail(ENAMETOOLONG);
    memcpy(text + size, rest->at, left + 1);
    memcpy(rest->text, text, (size_t)size + left + 1);
    rest->at = rest->text;
    return 1;
}

static int open_name(int directory, const char *name, bool last, int flags, mode_t mode, bool make) {
    if (!*name) return openat(directory, ".", flags & ~(O_CREAT | O_EXCL));
    if (last) return openat(directory, name, flags | O_NOFOLLOW, mode);
    int fd = openat(directory, name, STEP);
    if (fd >= 0 || errno != ENOENT || !make) return fd;
    if (mkdirat(directory, name, 0755) && errno != EEXIST) return -1;
    return openat(directory, name, STEP);
}

int path_open(const char *path, int flags, mode_t mode, bool make) {
    struct rest rest;
    char name[NAME_MAX + 1];
    size_t size = strlen(path);
    if (*path != '/') return fail(EINVAL);
    if (size >= PATH_MAX) return fail(ENAMETOOLONG);
    memcpy(rest.text, path, size + 1);
    rest.at = rest.text;
    int here = open("/", STEP);
    for (int links = 0; here >= 0;) {
        bool last = false;
        int next = next_name(&rest, name, &last) ? -1 : open_name(here, name, last, flags, mode, make);
        int error = errno;
        /* To a link that is not followed, the answer is either. */
        bool maybe = next < 0 && *name && (error == ELOOP || error == ENOTDIR);
        int link = maybe ? take_link(&rest, here, name) : 0;
        if (link < 0) error = errno;
        if (link > 0 && ++links > MOST_LINKS) {
            error = ELOOP;
            link = -1;
        }
        if (link > 0) {
            if (*rest.at != '/') continue;
            next = open("/", STEP);
            error = errno;
        }
        close(here);
        errno = error;
        if (next < 0 || (link <= 0 && (last || !*name))) return next;
        here = next;
    }
    return here;
}

bool path_is_made_up(int fd) {
    struct statfs system;
    if (fstatfs(fd, &system)) return true;
    switch ((unsigned long)system.f_type) {
        case PROC_SUPER_MAGIC:
        case SYSFS_MAGIC:
        case CGROUP_SUPER_MAGIC:
        case CGROUP2_SUPER_MAGIC:
        case DEVPTS_SUPER_MAGIC: return true;
        default: return false;
    }
}

void path_unlock(const char *path) {
    struct stat status;
    if (!lstat(path, &status) && S_ISDIR(status.st_mode)) chmod(path, (status.st_mode & 07777) | S_IRWXU);
}

void path_unlock_parents(char *path) {
    path_unlock("/");
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        path_unlock(path);
        *slash = '/';
    }
}

/* The name is looked at and changed by one descriptor, so that nothing else can take its place. */
static bool unlock_entry(int parent, const char *name, mode_t needed) {
    char link[64];
    struct stat status;
    int fd = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    bool done = !fstat(fd, &status) && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) &&
                !chmod(link, (status.st_mode & 07777) | needed);
    close(fd);
    return done;
}

int entry_open(int parent, const char *name, const struct stat *status, bool *unlocked) {
    bool directory = S_ISDIR(status->st_mode);
    mode_t needed = directory ? S_IRUSR | S_IXUSR : S_IRUSR;
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | (directory ? O_DIRECTORY : 0);
    *unlocked = (status->st_mode & needed) != needed && unlock_entry(parent, name, needed);
    int fd = openat(parent, name, flags);
    if (*unlocked && fd >= 0 && !directory) entry_lock(fd, status->st_mode);
    return fd;
}

void entry_lock(int fd, mode_t mode) {
    /* It may have been removed meanwhile; then nobody is left to be told. */
    if (fchmod(fd, mode & 07777)) errno = 0;
}
