/* Mounts. New ones are made detached and put in place by descriptor, so that no path is walked twice. */
#include "launch.h"

static void fs_option(int fs, unsigned how, const char *key, const void *value, int aux)
{
    must(sys(NR_fsconfig, fs, how, key, value, aux));
}

static int mount_of(int fs, u64 attrs)
{
    fs_option(fs, FSCONFIG_CMD_CREATE, 0, 0, 0);
    int fd = (int)must(sys(NR_fsmount, fs, FSMOUNT_CLOEXEC, attrs));
    sys(NR_close, fs);
    return fd;
}

/* key=value or flag, joined by commas, as mount(8) takes them. */
static void fs_options(int fs, const char *option)
{
    while (*option) {
        char key[64], value[64];
        size_t k = 0, v = 0, has_value = 0;
        for (; *option && *option != ','; option++) {
            if (!has_value && *option == '=')
                has_value = 1;
            else if (has_value && v < sizeof value - 1)
                value[v++] = *option;
            else if (!has_value && k < sizeof key - 1)
                key[k++] = *option;
            else
                refuse(ENAMETOOLONG);
        }
        option += *option == ',';
        key[k] = value[v] = 0;
        fs_option(fs, has_value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, key, has_value ? value : 0, 0);
    }
}

void op_mount(void)
{
    char **word = launch.operand;
    int fs = (int)must(sys(NR_fsopen, word[1], FSOPEN_CLOEXEC));
    fs_options(fs, word[2]);
    fill(0, mount_of(fs, number(word[3])));
}

static char *put_fd_path(char *end, int fd)
{
    return put_number(put(end, "/proc/self/fd/"), (u64)fd);
}

/* By descriptor from kernel 6.13 on; before that by its /proc name, which needs no escaping and stays far below the
 * 255 bytes the kernel takes. */
static void fs_layer(int fs, const char *key, int fd)
{
    char name[32];
    if (sys(NR_fsconfig, fs, FSCONFIG_SET_FD, key, 0, fd) >= 0)
        return;
    put_fd_path(name, fd);
    fs_option(fs, FSCONFIG_SET_STRING, key, name, 0);
}

static int overlay_of(int top, int bottom, const char *options)
{
    int fs = (int)must(sys(NR_fsopen, "overlay", FSOPEN_CLOEXEC));
    fs_options(fs, options);
    if (top < 0 && sys(NR_fsconfig, fs, FSCONFIG_SET_FD, "lowerdir+", 0, bottom) >= 0)
        return fs;
    if (top >= 0 && sys(NR_fsconfig, fs, FSCONFIG_SET_FD, "lowerdir+", 0, top) >= 0) {
        fs_option(fs, FSCONFIG_SET_FD, "lowerdir+", 0, bottom);
        return fs;
    }
    char layers[64], *end = layers;
    if (top >= 0)
        end = put(put_fd_path(end, top), ":");
    put_fd_path(end, bottom);
    fs_option(fs, FSCONFIG_SET_STRING, "lowerdir", layers, 0);
    return fs;
}

/* Read-only: what TOP has covers, or hides, what BOTTOM has. */
void op_overlay(void)
{
    fill(0, mount_of(overlay_of(slot_of(1), slot_of(2), "userxattr"), number(launch.operand[3])));
}

/* The same with a layer that takes all that is written; TOP and BOTTOM never change. */
void op_copy(void)
{
    int fs = overlay_of(equal(launch.operand[1], "-") ? -1 : slot_of(1), slot_of(2), launch.operand[5]);
    fs_layer(fs, "upperdir", slot_of(3));
    fs_layer(fs, "workdir", slot_of(4));
    fill(0, mount_of(fs, number(launch.operand[6])));
}

static void set_attributes(int fd, u64 attrs)
{
    struct mount_attr attr = {.attr_set = attrs, .propagation = MS_PRIVATE};
    must(sys(NR_mount_setattr, fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr));
}

/* Recursive: in a user namespace the kernel refuses to clone a tree without the mounts that lie in it. */
void op_tree(void)
{
    int fd = (int)must(sys(NR_open_tree, slot_of(1), "",
                           OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE));
    set_attributes(fd, number(launch.operand[2]));
    fill(0, fd);
}

/* Files look as if they were somebody else's, and what that user makes is the owner's on disk. */
void op_idmap(void)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (u64)slot_of(1)};
    must(sys(NR_mount_setattr, slot_of(0), "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr));
}

/* Only a user namespace makes copies of the host's mounts dependents; without one they are its peers, and all that is
 * mounted here would be mounted there. */
void op_private(void)
{
    struct mount_attr attr = {.propagation = MS_PRIVATE};
    must(sys(NR_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof attr));
}

/* Private too: what the host mounts later must not appear inside, writable. */
void op_readonly(void)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, .propagation = MS_PRIVATE};
    must(sys(NR_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof attr));
}

void op_attach(void)
{
    must(sys(NR_move_mount, slot_of(0), "", slot_of(1), "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
}

/* The old root goes where the new one is, and from there away: nothing is left that leads to it. */
void op_pivot(void)
{
    must(sys(NR_fchdir, slot_of(0)));
    must(sys(NR_pivot_root, ".", "."));
    must(sys(NR_umount2, ".", MNT_DETACH));
}

void op_attributes(void)
{
    struct mount_attr attr = {.attr_set = number(launch.operand[1])};
    must(sys(NR_mount_setattr, slot_of(0), "", AT_EMPTY_PATH, &attr, sizeof attr));
}

static void check_name(const char *name)
{
    if (!*name || equal(name, ".") || equal(name, ".."))
        refuse(EINVAL);
    for (; *name; name++)
        if (*name == '/')
            refuse(EINVAL);
}

/* A character device 0:0 is what overlayfs takes as "not there"; making one needs no privilege. One inode serves
 * all of them. */
void op_whiteout(void)
{
    static int at = -1;
    static const char *first;
    int layer = slot_of(0);
    const char *name = launch.operand[1];
    check_name(name);
    if (at >= 0 && sys(NR_linkat, at, first, layer, name, 0) >= 0)
        return;
    must(sys(NR_mknodat, layer, name, S_IFCHR, 0));
    at = layer;
    first = name;
}

/* One name in a file system that this plan has just made; with `?` it may be there from an earlier run, and then a
 * directory must be one, not a link to one. */
void op_make(void)
{
    char **word = launch.operand, *name = word[2], *kind = word[3];
    int at = slot_of(1), only = 0;
    long made;
    unsigned mode = (unsigned)number(word[4]);
    check_name(name);
    if (equal(kind, "dir?")) {
        made = sys(NR_mkdirat, at, name, mode);
        must(made == -EEXIST ? 0 : made);
        only = O_DIRECTORY;
    } else if (equal(kind, "file?")) {
        made = sys(NR_mknodat, at, name, S_IFREG | mode, 0);
        must(made == -EEXIST ? 0 : made);
    } else if (equal(kind, "dir")) {
        must(sys(NR_mkdirat, at, name, mode));
        must(sys(NR_fchmodat, at, name, mode)); /* whatever the caller's umask took away */
    } else if (equal(kind, "file")) {
        must(sys(NR_mknodat, at, name, S_IFREG | mode, 0));
    } else if (kind[0] == '-' && kind[1] == '>') {
        must(sys(NR_symlinkat, kind + 2, at, name));
    } else {
        refuse(EINVAL);
    }
    fill(0, (int)must(sys(NR_openat, at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC | only)));
}
