#include "accounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"

enum { FILE_BYTES = 1 << 20, FIELDS = 4, NAME_BYTES = 256 };

struct name {
    const char *text;
    size_t size;
};

struct record {
    struct name fields[FIELDS];
};

/* As much of a regular file as anyone looks at; nothing where there is none. */
static struct buffer slurp(const char *path) {
    struct buffer text = {0};
    struct stat status;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return text;
    if (!fstat(fd, &status) && S_ISREG(status.st_mode)) {
        buffer_reserve(&text, FILE_BYTES);
        ssize_t got;
        while (text.size < FILE_BYTES && (got = read(fd, text.data + text.size, FILE_BYTES - text.size)) > 0)
            text.size += (size_t)got;
    }
    close(fd);
    return text;
}

static bool same(struct name a, struct name b) { return a.size == b.size && !memcmp(a.text, b.text, a.size); }

static bool number(struct name name, uint32_t *value) {
    uint64_t sum = 0;
    if (!name.size || name.size > 10) return false;
    for (size_t i = 0; i < name.size; i++) {
        if (name.text[i] < '0' || name.text[i] > '9') return false;
        sum = sum * 10 + (uint64_t)(name.text[i] - '0');
    }
    *value = (uint32_t)sum;
    return sum < UINT32_MAX; /* the last one means "no change" to the kernel */
}

static struct name until(const char **at, const char *end, char separator) {
    const char *stop = memchr(*at, separator, (size_t)(end - *at));
    struct name name = {*at, (size_t)((stop ? stop : end) - *at)};
    *at = stop ? stop + 1 : end;
    return name;
}

/* The next line that has all the fields that are looked at. */
static bool next_record(const char **at, const char *end, struct record *record) {
    while (*at < end) {
        struct name line = until(at, end, '\n');
        const char *from = line.text, *stop = line.text + line.size;
        int count = 0;
        while (count < FIELDS && from < stop) record->fields[count++] = until(&from, stop, ':');
        if (count == FIELDS - 1 && stop[-1] == ':') record->fields[count++] = (struct name){stop, 0};
        if (count == FIELDS) return true;
    }
    return false;
}

/* name:password:uid:gid:... */
static bool find_user(struct name user, struct identity *identity, struct name *found, struct buffer *passwd) {
    const char *at = (const char *)passwd->data, *end = at + passwd->size;
    struct record record;
    uint32_t wanted = 0, uid, gid;
    bool by_number = number(user, &wanted);
    while (at < end && next_record(&at, end, &record)) {
        if (!number(record.fields[2], &uid) || !number(record.fields[3], &gid)) continue;
        if (by_number ? uid != wanted : !same(record.fields[0], user)) continue;
        identity->uid = uid;
        identity->gid = gid;
        *found = record.fields[0];
        return true;
    }
    if (by_number) identity->uid = wanted;
    return by_number;
}

static bool is_member(struct name members, struct name user) {
    const char *at = members.text, *end = at + members.size;
    while (at < end)
        if (same(until(&at, end, ','), user)) return true;
    return false;
}

static void add_group(struct identity *identity, gid_t gid) {
    if (identity->group_count < MAX_GROUPS) identity->groups[identity->group_count++] = gid;
}

/* name:password:gid:members */
static void find_groups(struct name user, struct identity *identity, const struct buffer *file) {
    const char *at = (const char *)file->data, *end = at + file->size;
    struct record record;
    uint32_t gid;
    while (at < end && next_record(&at, end, &record))
        if (number(record.fields[2], &gid) && is_member(record.fields[3], user)) add_group(identity, gid);
}

static bool find_group(struct name group, gid_t *gid, const struct buffer *file) {
    const char *at = (const char *)file->data, *end = at + file->size;
    struct record record;
    if (number(group, gid)) return true;
    while (at < end && next_record(&at, end, &record))
        if (same(record.fields[0], group) && number(record.fields[2], gid)) return true;
    return false;
}

static const char *resolve(const char *text, struct identity *identity, struct buffer *passwd, struct buffer *group) {
    const char *at = text, *end = text + strlen(text);
    struct name user = until(&at, end, ':'), found = {0}, named = {at, (size_t)(end - at)};
    if (!user.size || user.size > NAME_BYTES || named.size > NAME_BYTES) return "no such user";
    if (!find_user(user, identity, &found, passwd)) return "no such user";
    add_group(identity, identity->gid);
    if (named.size) {
        if (!find_group(named, &identity->gid, group)) return "no such group";
        identity->groups[0] = identity->gid;
    } else if (found.size) find_groups(found, identity, group);
    return NULL;
}

const char *account_find(const char *user, struct identity *identity) {
    struct buffer passwd = slurp("/etc/passwd"), group = slurp("/etc/group");
    *identity = (struct identity){.changes = true};
    const char *wrong = resolve(user, identity, &passwd, &group);
    buffer_free(&passwd);
    buffer_free(&group);
    return wrong;
}
