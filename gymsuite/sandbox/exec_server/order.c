#define _GNU_SOURCE
#include "order.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { TEXT_BYTES = 64 << 10, ENDS = 3 };

struct order {
    uint32_t processes;
    struct identity identity;
};

union rights {
    struct cmsghdr header;
    char room[CMSG_SPACE(ENDS * sizeof(int))];
};

bool order_fits(const struct command *command) { return !command->announced && command->size <= TEXT_BYTES; }

bool order_send(int control, const struct command *command, struct ends ends) {
    struct order order = {command->processes, command->identity};
    struct iovec parts[2] = {{&order, sizeof order}, {command->text, command->size}};
    union rights rights = {0};
    struct msghdr message = {
        .msg_iov = parts, .msg_iovlen = 2, .msg_control = &rights, .msg_controllen = sizeof rights};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof ends);
    memcpy(CMSG_DATA(header), &ends, sizeof ends);
    return sendmsg(control, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

bool order_receive(int control, struct command *command) {
    static uint8_t text[TEXT_BYTES];
    struct order order;
    struct iovec parts[2] = {{&order, sizeof order}, {text, sizeof text}};
    union rights rights = {0};
    struct msghdr message = {
        .msg_iov = parts, .msg_iovlen = 2, .msg_control = &rights, .msg_controllen = sizeof rights};
    ssize_t got;
    while ((got = recvmsg(control, &message, 0)) < 0 && errno == EINTR) continue;
    if (got < (ssize_t)sizeof order) return false;
    *command = (struct command){.processes = order.processes};
    command->identity = order.identity;
    command->text = text;
    command->size = (size_t)got - sizeof order;
    /* The lowest free numbers are given out in order, and 0 to 2 are free. */
    int fds[ENDS] = {-1, -1, -1};
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_len == CMSG_LEN(sizeof fds)) memcpy(fds, CMSG_DATA(header), sizeof fds);
    for (int i = 0; i < ENDS; i++)
        if (fds[i] != i) return false;
    return true;
}
