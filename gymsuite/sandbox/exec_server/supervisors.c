#define _GNU_SOURCE
#include "supervisors.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "order.h"

enum { MAX_WAITING = 2, SHARED_BYTES = 4096 };

static struct supervisor *supervisor_new(void) {
    struct supervisor *supervisor = calloc(1, sizeof *supervisor);
    if (!supervisor) die("out of memory");
    void *page = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    supervisor->progress = page == MAP_FAILED ? NULL : page;
    supervisor->control = -1;
    return supervisor;
}

void supervisor_forget(struct supervisor *supervisor) {
    int error = errno;
    if (supervisor->progress) munmap(supervisor->progress, SHARED_BYTES);
    if (supervisor->control >= 0) close(supervisor->control);
    free(supervisor);
    errno = error;
}

static struct supervisor *fork_one(const struct command *command, struct ends ends) {
    int pair[2];
    struct supervisor *supervisor = supervisor_new();
    if (!supervisor->progress || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        supervisor_forget(supervisor);
        return NULL;
    }
    supervisor->control = pair[0];
    supervisor->pid = fork();
    if (!supervisor->pid) supervise(pair[1], supervisor->progress, command, ends);
    close(pair[1]);
    if (supervisor->pid > 0) return supervisor;
    supervisor_forget(supervisor);
    return NULL;
}

static struct supervisor *take_waiting(struct supervisors *all) {
    struct supervisor *supervisor = all->waiting;
    if (!supervisor) return NULL;
    all->waiting = supervisor->next;
    all->count--;
    return supervisor;
}

struct supervisor *supervisor_start(struct supervisors *all, const struct command *command, struct ends ends) {
    struct supervisor *supervisor;
    while (order_fits(command) && (supervisor = take_waiting(all))) {
        supervisor->progress->running = 0;
        if (order_send(supervisor->control, command, ends)) {
            /* It does not take the order itself, so nobody would miss it if it had been stopped. */
            kill(supervisor->pid, SIGCONT);
            return supervisor;
        }
        supervisor_forget(supervisor);
    }
    return fork_one(command, ends);
}

void supervisor_release(struct supervisors *all, struct supervisor *supervisor, bool idle) {
    if (!idle || all->count == MAX_WAITING) {
        supervisor_forget(supervisor);
        return;
    }
    supervisor->next = all->waiting;
    all->waiting = supervisor;
    all->count++;
}

void supervisors_reaped(struct supervisors *all, pid_t pid) {
    for (struct supervisor **link = &all->waiting, *supervisor; (supervisor = *link); link = &supervisor->next)
        if (supervisor->pid == pid) {
            *link = supervisor->next;
            all->count--;
            supervisor_forget(supervisor);
            return;
        }
}
