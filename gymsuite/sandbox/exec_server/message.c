#define _GNU_SOURCE
#include "message.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    char room[CMSG_SPACE(sizeof(int) * MESSAGE_FDS)];
    struct cmsghdr align;
};

static void take_descriptors(struct msghdr *header, struct message *message) {
    for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
        message->fd_count = (int)((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(message->fds, CMSG_DATA(part), (size_t)message->fd_count * sizeof(int));
    }
}

static bool split(struct message *message) {
    char *word = message->text, *end = message->text + message->size;
    if (end == word || end[-1]) return false;
    for (; word < end && message->count < MESSAGE_WORDS; word += strlen(word) + 1) message->words[message->count++] = word;
    message->words[message->count] = NULL;
    return word == end;
}

enum received message_receive(int socket, struct message *message) {
    union control control;
    struct iovec data = {message->text, sizeof message->text};
    struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    if (size < 0) return errno == EAGAIN || errno == EINTR ? NOTHING : GONE;
    message->size = (size_t)size;
    message->count = message->at = message->fd_count = 0;
    take_descriptors(&header, message);
    if (size && !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && split(message)) return MESSAGE;
    message_close(message);
    return GONE;
}

static bool send_with(int socket, const void *text, size_t size, const int *fds, int count) {
    union control control;
    struct iovec data = {(void *)text, size};
    struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1};
    if (count) {
        header.msg_control = &control;
        header.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
        struct cmsghdr *part = CMSG_FIRSTHDR(&header);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
        memcpy(CMSG_DATA(part), fds, sizeof(int) * (size_t)count);
    }
    return sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

bool message_forward(int socket, const struct message *message) {
    return send_with(socket, message->text, message->size, message->fds, message->fd_count);
}

const char *message_next(struct message *message) {
    return message->at < message->count ? message->words[message->at++] : NULL;
}

void message_close(struct message *message) {
    while (message->fd_count) close(message->fds[--message->fd_count]);
}

void answer(int socket, const char *id, const char *text, int fd) {
    char line[512];
    int size = snprintf(line, sizeof line, "%.40s %.400s", id, text);
    send_with(socket, line, (size_t)size, &fd, fd >= 0);
}
