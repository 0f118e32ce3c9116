#define _GNU_SOURCE
#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "become.h"
#include "order.h"
#include "privileges.h"

enum { CONTROL = 3, STACK_BYTES = 128 << 10 };

struct usage children_usage(void) {
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    uint64_t seconds = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
    uint64_t rest = (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    return (struct usage){seconds * 1000000 + rest, (uint64_t)used.ru_maxrss * 1024};
}

int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

/* `before` is what all earlier commands had used. */
static void report(struct report message, uint64_t before) {
    struct usage used = children_usage();
    message.cpu_us = used.cpu_us - before;
    message.peak_bytes = used.peak_bytes;
    /* The server may have dismissed this supervisor; then nobody is left to be told. */
    if (send(CONTROL, &message, sizeof message, MSG_NOSIGNAL) < 0) return;
}

/* Signals that the owner of the sandbox ignores are no business of the command. */
static void reset_signals(void) {
    sigset_t none;
    for (int number = 1; number < SIGRTMIN; number++) signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The pipes become 0 to 2, and nothing else of the server's is kept but the control socket. */
static void take_over(int control, struct ends ends) {
    dup2(ends.in, STDIN_FILENO);
    dup2(ends.out, STDOUT_FILENO);
    dup2(ends.err, STDERR_FILENO);
    if (control != CONTROL) dup2(control, CONTROL);
    fcntl(CONTROL, F_SETFD, FD_CLOEXEC);
    if (syscall(SYS_close_range, CONTROL + 1, ~0U, 0))
        for (int fd = CONTROL + 1; fd < 4096; fd++) close(fd);
}

/* When memory runs out, a command goes before the server, however little of it is its own. */
static void go_first(void) {
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (write(fd, "1000", 4) < 0) errno = 0;
    close(fd);
}

/* Whether anything is left below; what has died is gone with the question. */
static bool alone(void) {
    pid_t ended;
    while ((ended = waitpid(-1, NULL, WNOHANG)) > 0) continue;
    return ended < 0 && errno == ECHILD;
}

/* What became of a command; of a process that never was one there is nothing to say. */
static void report_end(const struct progress *progress, int status, bool idle, uint64_t before) {
    if (progress->refused) report((struct report){.kind = REPORT_REFUSED, .value = progress->refused, .idle = idle}, before);
    else if (progress->taken) report((struct report){.kind = REPORT_ENDED, .value = status, .idle = idle}, before);
}

/* The command's end is reported at once; what else lives below the supervisor is waited for. */
static void watch(pid_t command, uint64_t before, const struct progress *progress) {
    for (bool ended = false;;) {
        int status;
        pid_t pid = wait(&status);
        if (pid < 0 && errno != ECHILD) continue;
        bool idle = pid < 0 || (pid == command && alone());
        if (pid == command) report_end(progress, status, idle, before);
        else if (idle && ended) report((struct report){.idle = true}, before);
        if (pid == command) ended = true;
        if (idle) return;
    }
}

static void close_streams(void) {
    for (int fd = 0; fd < CONTROL; fd++) close(fd);
}

static void run(const struct command *command, struct progress *progress) {
    uint64_t before = children_usage().cpu_us;
    struct words words = command_words(command);
    progress->taken = true;
    progress->refused = 0;
    /* The child shares this memory until it is another program. */
    pid_t child = vfork();
    bool no_process = child < 0 && errno == EAGAIN;
    if (!child) become(command, &words, progress);
    if (child < 0) dprintf(STDERR_FILENO, "cannot start a process: %s\n", strerror(errno));
    /* Without this the server would never see the end of the command's output. */
    close_streams();
    free(words.argv);
    free(words.env);
    if (child < 0) {
        report((struct report){
            .kind = REPORT_ENDED, .value = NOT_RUNNABLE << 8, .no_process = no_process, .idle = true}, before);
    } else {
        if (command->announced && !progress->refused) report((struct report){.kind = REPORT_STARTED, .value = child}, before);
        watch(child, before, progress);
    }
}

static struct words awaited;

static int await(void *data) {
    struct progress *progress = data;
    struct command command;
    if (!order_receive(CONTROL, &command)) _exit(0);
    progress->taken = true;
    awaited = command_words(&command);
    become(&command, &awaited, progress);
}

/* The next command's process is there before it is asked for. It shares this memory until it is another program: nobody
   else uses that meanwhile, and to copy it would take longer than is gained. False when it had nothing to do. */
static bool run_next(struct progress *progress) {
    static _Alignas(16) char stack[STACK_BYTES];
    uint64_t before = children_usage().cpu_us;
    progress->taken = false;
    progress->refused = 0;
    pid_t child = clone(await, stack + sizeof stack, CLONE_VM | SIGCHLD, progress);
    if (child < 0) return false;
    watch(child, before, progress);
    free(awaited.argv);
    free(awaited.env);
    awaited = (struct words){0};
    return progress->taken;
}

_Noreturn void supervise(int control, struct progress *progress, const struct command *command, struct ends ends) {
    struct command next;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    /* Each command has a process group of its own in it: a session is dearer. */
    setsid();
    take_over(control, ends);
    reset_signals();
    privileges_use_own_files();
    go_first();
    run(command, progress);
    for (;;) {
        if (run_next(progress)) continue;
        if (!order_receive(CONTROL, &next)) _exit(0);
        run(&next, progress);
    }
}
