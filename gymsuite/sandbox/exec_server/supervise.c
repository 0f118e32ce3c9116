#define _GNU_SOURCE
#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPORT = 3, NOT_RUNNABLE = 126, NOT_FOUND = 127 };

uint64_t children_cpu_us(void) {
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
           (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

static void report(uint32_t kind, int32_t value) {
    struct report message = {kind, value, children_cpu_us()};
    /* The server may be ending; then nobody is left to be told. */
    if (write(REPORT, &message, sizeof message) < 0) return;
}

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
static void execute(const struct command *command) {
    const char *name = command->argv[0];
    if (strchr(name, '/')) {
        execve(name, command->argv, command->env);
        return;
    }
    int error = ENOENT;
    for (const char *path = search_path(command->env); *path && *name;) {
        char candidate[PATH_MAX];
        size_t size = strcspn(path, ":");
        int length = snprintf(candidate, sizeof candidate, "%.*s/%s", (int)size, size ? path : ".", name);
        if (size < PATH_MAX && length < (int)sizeof candidate) execve(candidate, command->argv, command->env);
        if (errno != ENOENT && errno != ENOTDIR) error = errno;
        path += size + (path[size] == ':');
    }
    errno = error;
}

/* Signals that the owner of the sandbox ignores are no business of the command. */
static void reset_signals(void) {
    sigset_t none;
    for (int number = 1; number < SIGRTMIN; number++) signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void limit_processes(uint32_t processes) {
    struct rlimit limit = {processes, processes};
    if (processes) setrlimit(RLIMIT_NPROC, &limit);
}

static _Noreturn void become(const struct command *command) {
    report(REPORT_STARTED, getpid());
    setsid();
    limit_processes(command->processes);
    reset_signals();
    if (chdir(command->cwd)) fail("cannot enter the directory", command->cwd, NOT_RUNNABLE);
    execute(command);
    fail("cannot run", command->argv[0], errno == ENOENT || errno == ENOTDIR ? NOT_FOUND : NOT_RUNNABLE);
}

/* The pipes become 0 to 3, and nothing else of the server's is inherited. */
static void take_over(struct ends ends) {
    dup2(ends.in, STDIN_FILENO);
    dup2(ends.out, STDOUT_FILENO);
    dup2(ends.err, STDERR_FILENO);
    if (ends.report != REPORT) dup2(ends.report, REPORT);
    fcntl(REPORT, F_SETFD, FD_CLOEXEC);
    if (syscall(SYS_close_range, REPORT + 1, ~0U, 0))
        for (int fd = REPORT + 1; fd < 4096; fd++) close(fd);
}

/* The command's end is reported at once; the supervisor stays for as long as anything lives below it. */
static _Noreturn void watch(pid_t command) {
    for (;;) {
        int status;
        pid_t ended = wait(&status);
        if (ended == command) report(REPORT_ENDED, status);
        if (ended < 0 && errno == ECHILD) _exit(0);
    }
}

/* When memory runs out, a command goes before the server, however little of it is its own. */
static void go_first(void) {
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (write(fd, "500", 3) < 0) errno = 0;
    close(fd);
}

static _Noreturn void run(const struct command *command, struct ends ends) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    take_over(ends);
    go_first();
    /* The child shares this memory until it is another program, and writes nothing that is needed. */
    pid_t child = vfork();
    if (!child) become(command);
    if (child < 0) {
        dprintf(STDERR_FILENO, "cannot start a process: %s\n", strerror(errno));
        report(REPORT_ENDED, NOT_RUNNABLE << 8);
        _exit(0);
    }
    /* Without this the server would never see the end of the command's output. */
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    watch(child);
}

pid_t supervise(const struct command *command, struct ends ends) {
    pid_t pid = fork();
    if (!pid) run(command, ends);
    return pid;
}
