/* Preloaded into Postgres, whose processes work in the folder of their cluster. A sync fails once when
   that folder has a file that asks for it, which is removed then. */

#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The name of the file that asks for it, by the file that is synced; NULL where none can. */
static const char *request_for(int file) {
    char link[32], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return NULL;
    path[length] = '\0';
    if (strstr(path, "/cluster/pg_wal/")) return "fail-sync-of-log";
    if (strstr(path, "/cluster/base/")) return "fail-sync-of-tables";
    return NULL;
}

static int sync_by(long call, int file) {
    const char *request = request_for(file);
    /* Of several processes one removes it. */
    if (request && unlink(request) == 0) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(call, file);
}

int fsync(int file) { return sync_by(SYS_fsync, file); }

int fdatasync(int file) { return sync_by(SYS_fdatasync, file); }
