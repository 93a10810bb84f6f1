/* Slots: the only place where paths become descriptors. */
#include "launch.h"

enum { MAX_DESCRIPTOR = 0x7fffffff, MAY_BE_MISSING = 1 << 16 };

/* Name by name, for where openat2 is not there: a jail of root's refuses it. */
static long walk(int at, const char *path, u64 flags)
{
    long fd = sys(NR_openat, at, *path == '/' ? "/" : ".", O_PATH | O_CLOEXEC);
    while (fd >= 0 && *path) {
        char name[256];
        size_t n = 0;
        while (*path == '/')
            path++;
        while (path[n] && path[n] != '/' && n < sizeof name - 1)
            name[n] = path[n], n++;
        name[n] = 0;
        path += n;
        if (!n)
            break;
        long next = equal(name, "..") ? -EINVAL
                    : *path && *path != '/' ? -ENAMETOOLONG
                    : sys(NR_openat, fd, name, O_NOFOLLOW | O_CLOEXEC | (*path ? O_PATH : flags), 0);
        sys(NR_close, fd);
        fd = next;
    }
    return fd;
}

long open_without_links(int at, const char *path, u64 flags, u64 resolve)
{
    struct open_how how = {.flags = flags | O_CLOEXEC,
                           .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | resolve};
    long fd;
    do
        fd = sys(NR_openat2, at, path, &how, sizeof how);
    while (fd == -EAGAIN); /* a rename elsewhere made the kernel's walk uncertain */
    return fd == -ENOSYS && !resolve ? walk(at, path, flags) : fd;
}

/* Opened without following any link, then compared with what the planner saw: a directory that was replaced
 * since by a symlink, another directory or a mount is refused here, whoever replaced it. */
void op_open(void)
{
    char **word = launch.operand;
    int from_root = equal(word[1], "/");
    if (from_root && word[2][0] != '/')
        refuse(EINVAL); /* it would mean the working directory */
    u64 resolve = number(word[3]) & ~(u64)MAY_BE_MISSING;
    long fd = open_without_links(from_root ? AT_FDCWD : slot_of(1), word[2], O_PATH, resolve);
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

/* The lowest descriptor of ours that is not below this one; ~0: there is none. */
static unsigned next_of_ours(unsigned from)
{
    unsigned found = ~0u, also[] = {(unsigned)launch.life, (unsigned)launch.status}; /* `parent` fills no slot */
    for (int i = 0; i < SLOTS; i++)
        if (launch.slot[i] > 2 && (unsigned)launch.slot[i] >= from && (unsigned)launch.slot[i] < found)
            found = (unsigned)launch.slot[i];
    for (int i = 0; i < 2; i++)
        if (also[i] >= from && also[i] < found)
            found = also[i];
    return found;
}

/* A descriptor that leaked into us would be a way around every fence: a directory outside, opened for us. By the gaps
 * between ours, not one by one: a caller with a thousand descriptors gave us high numbers. */
void op_close(void)
{
    unsigned from = 3, ours;
    while ((ours = next_of_ours(from)) != ~0u) {
        if (ours > from)
            must(sys(NR_close_range, from, ours - 1, 0));
        from = ours + 1;
    }
    must(sys(NR_close_range, from, ~0u, 0));
}
