#define _GNU_SOURCE
#include "spare.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stage.h"

enum { FIRST = 3, SECOND = 4, THIRD = 5 };

/* A child has what it needs as the first descriptors, and none of the other sandboxes'. */
static _Noreturn void act(const struct keeper *keeper, int socket, int number) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    prctl(PR_SET_NAME, "gymsuite-spare");
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int told = fcntl(socket, F_DUPFD_CLOEXEC, THIRD + 1);
    int outside = fcntl(keeper->spaces.outside, F_DUPFD_CLOEXEC, THIRD + 1);
    int bare = fcntl(keeper->spaces.bare, F_DUPFD_CLOEXEC, THIRD + 1);
    if (told < 0 || outside < 0 || bare < 0) _exit(70);
    dup3(told, FIRST, O_CLOEXEC);
    dup3(outside, SECOND, O_CLOEXEC);
    dup3(bare, THIRD, O_CLOEXEC);
    if (syscall(SYS_close_range, THIRD + 1, ~0U, 0))
        for (int fd = THIRD + 1; fd < 65536; fd++) close(fd);
    stage_act((struct actor){FIRST, {.outside = SECOND, .bare = THIRD}, number, keeper->uid, keeper->gid, &keeper->groups});
}

bool spare_fork(const struct keeper *keeper, struct spare *spare, int number) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) return false;
    pid_t pid = fork();
    if (!pid) act(keeper, pair[1], number);
    close(pair[1]);
    *spare = (struct spare){pid, pair[0], number};
    if (pid > 0) return true;
    close(pair[0]);
    spare->pid = 0;
    return false;
}

void spare_prepare(struct keeper *keeper) {
    if (keeper->spare.pid) return;
    int number = keeper->numbers++;
    if (groups_make(&keeper->groups, number) && spare_fork(keeper, &keeper->spare, number)) return;
    groups_remove(&keeper->groups, number);
}
