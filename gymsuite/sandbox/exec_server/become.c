#define _GNU_SOURCE
#include "become.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "privileges.h"

static _Noreturn void fail(const char *what, const char *name, int code) {
    dprintf(STDERR_FILENO, "%s '%s': %s\n", what, name, strerror(errno));
    _exit(code);
}

static const char *search_path(char *const *env) {
    for (; *env; env++)
        if (!strncmp(*env, "PATH=", 5)) return *env + 5;
    return "/usr/local/bin:/usr/bin:/bin";
}

/* The command's own PATH counts, which is why this is not execvp. */
static void execute(const struct words *words) {
    const char *name = words->argv[0];
    if (strchr(name, '/')) {
        execve(name, words->argv, words->env);
        return;
    }
    int error = ENOENT;
    for (const char *path = search_path(words->env); *path && *name;) {
        char candidate[PATH_MAX];
        size_t size = strcspn(path, ":");
        int length = snprintf(candidate, sizeof candidate, "%.*s/%s", (int)size, size ? path : ".", name);
        bool fits = size < PATH_MAX && length < (int)sizeof candidate;
        /* Most places do not have it, and saying so is not what execve is quickest at. */
        if (fits && !access(candidate, F_OK)) execve(candidate, words->argv, words->env);
        if (errno != ENOENT && errno != ENOTDIR) error = errno;
        path += size + (path[size] == ':');
    }
    errno = error;
}

static void limit_processes(uint32_t processes) {
    struct rlimit limit = {processes, processes};
    if (processes) setrlimit(RLIMIT_NPROC, &limit);
}

_Noreturn void become(const struct command *command, const struct words *words, struct progress *progress) {
    progress->running = getpid();
    setpgid(0, 0);
    setpriority(PRIO_PROCESS, 0, 0); /* the server's own is higher */
    limit_processes(command->processes);
    if (privileges_drop(&command->identity)) {
        progress->refused = errno;
        _exit(NOT_RUNNABLE);
    }
    if (chdir(words->cwd)) fail("cannot enter the directory", words->cwd, NOT_RUNNABLE);
    execute(words);
    fail("cannot run", words->argv[0], errno == ENOENT || errno == ENOTDIR ? NOT_FOUND : NOT_RUNNABLE);
}
