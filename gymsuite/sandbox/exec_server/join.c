#define _GNU_SOURCE
#include "join.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base.h"

void join(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) return;
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    if (!connect(fd, (const struct sockaddr *)&address, sizeof address) &&
        (dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0))
        die("cannot take the socket as its channel");
    close(fd);
}
