/* Slots: the only place where paths become descriptors. */
#include "launch.h"

enum { MAX_DESCRIPTOR = 0x7fffffff, MAY_BE_MISSING = 1 << 16 };

/* Opened without following any link, then compared with what the planner saw: a directory that was replaced
 * since by a symlink, another directory or a mount is refused here, whoever replaced it. */
void op_open(void)
{
    char **word = launch.operand;
    int from_root = equal(word[1], "/");
    if (from_root && word[2][0] != '/')
        refuse(EINVAL); /* it would mean the working directory */
    struct open_how how = {
        .flags = O_PATH | O_CLOEXEC,
        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | (number(word[3]) & ~(u64)MAY_BE_MISSING),
    };
    long fd;
    do
        fd = sys(NR_openat2, from_root ? AT_FDCWD : slot_of(1), word[2], &how, sizeof how);
    while (fd == -EAGAIN); /* a rename elsewhere made the kernel's walk uncertain */
    struct statx st;
    if (fd == -ENOENT && number(word[3]) & MAY_BE_MISSING) {
        fill(0, -1); /* a rule on it is then left out, which only takes a right away */
        return;
    }
    must(fd);
    must(sys(NR_statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st));
    if ((st.mode & S_IFMT) != number(word[4]))
        refuse((st.mode & S_IFMT) == S_IFDIR ? EISDIR : ENOTDIR);
    if (!equal(word[5], "-") && number(word[5]) != ((u64)st.dev_major << 32 | st.dev_minor))
        refuse(ESTALE);
    if (!equal(word[6], "-") && number(word[6]) != st.ino)
        refuse(ESTALE);
    fill(0, (int)fd);
}

void op_fd(void)
{
    u64 given = number(launch.operand[1]);
    int fd = (int)given;
    if (given > MAX_DESCRIPTOR)
        refuse(EBADF);
    if (fd > 2) /* a standard stream may be named in a rule, and stays with the command */
        must(sys(NR_fcntl, fd, F_SETFD, FD_CLOEXEC));
    fill(0, fd);
}

void op_keep(void)
{
    must(sys(NR_fcntl, slot_of(0), F_SETFD, 0));
}

static int is_ours(int fd)
{
    if (fd == launch.life || fd == launch.status)
        return 1;
    for (int i = 0; i < SLOTS; i++)
        if (launch.slot[i] == fd)
            return 1;
    return 0;
}

/* A descriptor that leaked into us would be a way around every fence: a directory outside, opened for us. */
void op_close(void)
{
    int highest = launch.life > 2 ? launch.life : 2; /* `parent` fills no slot */
    for (int i = 0; i < SLOTS; i++)
        if (launch.slot[i] > highest)
            highest = launch.slot[i];
    for (int fd = 3; fd < highest; fd++)
        if (!is_ours(fd))
            sys(NR_close, fd);
    must(sys(NR_close_range, highest + 1, ~0u, 0));
}
