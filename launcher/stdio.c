/* Standard descriptors carry the host's mounts into the jail: `run CMD < ~/.bashrc` would let CMD change that
 * file's mode, or write it through /proc/self/fd/0, whatever is mounted over it inside. */
#include "launch.h"

static struct statx stat_of(int fd)
{
    struct statx st;
    must(sys(NR_statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st));
    return st;
}

/* Not the device number: an overlay shows one of its own. No two files share inode, size and both times. */
static int is_same_file(const struct statx *a, const struct statx *b)
{
    return a->ino == b->ino && a->size == b->size && a->ctime.sec == b->ctime.sec &&
           a->ctime.nsec == b->ctime.nsec && a->mtime.sec == b->mtime.sec && a->mtime.nsec == b->mtime.nsec;
}

static void reopen_inside(int fd)
{
    char link[32], path[4096];
    put_number(put(link, "/proc/self/fd/"), (u64)fd);
    long n = must(sys(NR_readlinkat, AT_FDCWD, link, path, sizeof path - 1));
    path[n] = 0;
    int inside = (int)must(open_without_links(AT_FDCWD, path, O_RDONLY | O_NOCTTY | O_NONBLOCK, 0));
    struct statx outside_st = stat_of(fd), inside_st = stat_of(inside);
    if (!is_same_file(&outside_st, &inside_st))
        refuse(ESTALE);
    long offset = must(sys(NR_lseek, fd, 0, SEEK_CUR));
    must(sys(NR_lseek, inside, offset, SEEK_SET));
    must(sys(NR_dup3, inside, fd, 0));
    sys(NR_close, inside);
}

void op_stdio(void)
{
    int reopen = number(launch.operand[0]) == 1;
    for (int fd = 0; fd < 3; fd++) {
        long flags = must(sys(NR_fcntl, fd, F_GETFL));
        struct statx st = stat_of(fd);
        unsigned type = st.mode & S_IFMT;
        if (flags & O_PATH)
            refuse(EBADF);
        if (type == S_IFDIR)
            refuse(EISDIR);
        if (type == S_IFBLK)
            refuse(ENOTBLK);
        /* A file without a name (here-document, memfd) is nobody's to protect. */
        if (reopen && type == S_IFREG && (flags & O_ACCMODE) == O_RDONLY && st.nlink)
            reopen_inside(fd);
    }
}
