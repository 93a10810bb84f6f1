/* The tree of processes below one, read from /proc. Every orphan is reparented to PID 1 or to the subreaper, so what
 * is below either is the whole run. */
#include "launch.h"

static char *put_pid_path(char *path, int pid)
{
    return put_number(put(path, "/proc/"), (u64)pid);
}

/* A list of pids, each followed by a blank; a read may end in the middle of one. */
static void read_children(const char *path, void (*each)(int))
{
    char text[256];
    long fd = sys(NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC), got;
    for (int child = 0; fd >= 0 && (got = sys(NR_read, fd, text, sizeof text)) > 0;)
        for (long i = 0; i < got; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                child = child * 10 + (text[i] - '0');
            } else if (child) {
                each(child);
                child = 0;
            }
        }
    if (fd >= 0)
        sys(NR_close, fd);
}

/* The kernel lists a child under the thread that forked it. */
void for_each_child(int pid, void (*each)(int))
{
    char path[64], entries[1024], *end = put(put_pid_path(path, pid), "/task/");
    long fd = sys(NR_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), got;
    while (fd >= 0 && (got = sys(NR_getdents64, fd, entries, sizeof entries)) > 0)
        for (long at = 0; at < got;) {
            struct dirent64 *entry = (struct dirent64 *)(entries + at);
            at += entry->reclen;
            if (entry->name[0] != '.') {
                put(put(end, entry->name), "/children");
                read_children(path, each);
            }
        }
    if (fd >= 0)
        sys(NR_close, fd);
}

static u64 resident_pages(int pid)
{
    char path[64], text[256], *field = text;
    put(put_pid_path(path, pid), "/statm");
    if (read_file(path, text, sizeof text) <= 0)
        return 0;
    while (*field && *field != ' ')
        field++;
    return *field ? number(field + 1) : 0;
}

enum { PROCESSES = 8192 };
static int queue[PROCESSES];
static int queued;

static void enqueue(int pid)
{
    if (queued < PROCESSES)
        queue[queued++] = pid;
}

/* Of a process and all below it. More processes than the queue takes count as too much. */
u64 resident_bytes(int pid)
{
    u64 pages = 0;
    queued = 0;
    enqueue(pid);
    for (int next = 0; next < queued; next++) {
        pages += resident_pages(queue[next]);
        for_each_child(queue[next], enqueue);
    }
    return queued == PROCESSES ? ~0ull : pages * launch.page;
}
