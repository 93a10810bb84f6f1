/* What we use of the kernel: raw system calls for x86_64 and aarch64, and the constants they need. Own
 * constants throughout: distributions ship headers years older than the kernels they run (Debian 12 knows
 * Landlock ABI 3 only), and a freestanding program has no libc to lean on. */
#ifndef CORRAL_SYS_H
#define CORRAL_SYS_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t u64;
typedef uint32_t u32;
typedef uint16_t u16;
typedef int64_t s64;

#if defined(__x86_64__)
#define SYS(x86, arm) x86
static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
    long ret;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
}
#elif defined(__aarch64__)
#define SYS(x86, arm) arm
static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = n;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}
#else
#error "corral-launch knows x86_64 and aarch64"
#endif

/* sys(NUMBER, up to six arguments), pointers included */
#define SYS_ARGS(n, a, b, c, d, e, f, ...) \
    sys6((n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define sys(n, ...) SYS_ARGS(n, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)

#define NR_read SYS(0, 63)
#define NR_write SYS(1, 64)
#define NR_close SYS(3, 57)
#define NR_lseek SYS(8, 62)
#define NR_mmap SYS(9, 222)
#define NR_munmap SYS(11, 215)
#define NR_rt_sigaction SYS(13, 134)
#define NR_rt_sigprocmask SYS(14, 135)
#define NR_ioctl SYS(16, 29)
#define NR_getpid SYS(39, 172)
#define NR_socket SYS(41, 198)
#define NR_sendto SYS(44, 206)
#define NR_sendmsg SYS(46, 211)
#define NR_socketpair SYS(53, 199)
#define NR_clone SYS(56, 220)
#define NR_execve SYS(59, 221)
#define NR_wait4 SYS(61, 260)
#define NR_sched_yield SYS(24, 124)
#define NR_getrusage SYS(98, 165)
#define NR_kill SYS(62, 129)
#define NR_fcntl SYS(72, 25)
#define NR_fchdir SYS(81, 50)
#define NR_getppid SYS(110, 173)
#define NR_setsid SYS(112, 157)
#define NR_setgroups SYS(116, 159)
#define NR_setresuid SYS(117, 147)
#define NR_setresgid SYS(119, 149)
#define NR_capget SYS(125, 90)
#define NR_capset SYS(126, 91)
#define NR_rt_sigtimedwait SYS(128, 137)
#define NR_pivot_root SYS(155, 41)
#define NR_prctl SYS(157, 167)
#define NR_umount2 SYS(166, 39)
#define NR_getdents64 SYS(217, 61)
#define NR_timer_create SYS(222, 107)
#define NR_timer_settime SYS(223, 110)
#define NR_clock_gettime SYS(228, 113)
#define NR_exit_group SYS(231, 94)
#define NR_waitid SYS(247, 95)
#define NR_openat SYS(257, 56)
#define NR_mkdirat SYS(258, 34)
#define NR_mknodat SYS(259, 33)
#define NR_linkat SYS(265, 37)
#define NR_symlinkat SYS(266, 36)
#define NR_readlinkat SYS(267, 78)
#define NR_ppoll SYS(271, 73)
#define NR_fchmodat SYS(268, 53)
#define NR_signalfd4 SYS(289, 74)
#define NR_dup3 SYS(292, 24)
#define NR_prlimit64 SYS(302, 261)
#define NR_setns SYS(308, 268)
#define NR_seccomp SYS(317, 277)
#define NR_statx SYS(332, 291)
#define NR_open_tree SYS(428, 428)
#define NR_move_mount SYS(429, 429)
#define NR_fsopen SYS(430, 430)
#define NR_fsconfig SYS(431, 431)
#define NR_fsmount SYS(432, 432)
#define NR_pidfd_open SYS(434, 434)
#define NR_close_range SYS(436, 436)
#define NR_openat2 SYS(437, 437)
#define NR_mount_setattr SYS(442, 442)
#define NR_landlock_create_ruleset SYS(444, 444)
#define NR_landlock_add_rule SYS(445, 445)
#define NR_landlock_restrict_self SYS(446, 446)

/* errno */
#define EPERM 1
#define ENOENT 2
#define ESRCH 3
#define E2BIG 7
#define EBADF 9
#define ECHILD 10
#define EAGAIN 11
#define EACCES 13
#define ENOTBLK 15
#define EEXIST 17
#define ENOTDIR 20
#define EISDIR 21
#define EINVAL 22
#define ENAMETOOLONG 36
#define ENOSYS 38
#define ECONNRESET 104
#define ESTALE 116

/* open, stat */
#define AT_FDCWD (-100)
#define AT_EMPTY_PATH 0x1000
#define AT_RECURSIVE 0x8000
#define O_RDONLY 0
#define O_WRONLY 1
#define O_RDWR 2
#define O_ACCMODE 3
#define O_NOCTTY 0400
#define O_NONBLOCK 04000
#define O_DIRECTORY SYS(0200000, 040000)
#define O_NOFOLLOW SYS(0400000, 0100000)
#define O_CLOEXEC 02000000
#define O_PATH 010000000
#define RESOLVE_NO_MAGICLINKS 0x02
#define RESOLVE_NO_SYMLINKS 0x04
#define S_IFMT 0170000
#define S_IFCHR 0020000
#define S_IFDIR 0040000
#define S_IFBLK 0060000
#define S_IFREG 0100000
#define F_GETFD 1
#define F_SETFD 2
#define PIDFD_GET_MNT_NAMESPACE 0xff03
#define F_GETFL 3
#define FD_CLOEXEC 1
#define SEEK_SET 0
#define SEEK_CUR 1
#define AT_PAGESZ 6
#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_PRIVATE 2
#define MAP_ANONYMOUS 0x20

struct open_how {
    u64 flags, mode, resolve;
};

struct statx_time {
    s64 sec;
    u32 nsec;
    int pad;
};

struct statx {
    u32 mask, blksize;
    u64 attributes;
    u32 nlink, uid, gid;
    u16 mode, pad;
    u64 ino, size, blocks, attributes_mask;
    struct statx_time atime, btime, ctime, mtime;
    u32 rdev_major, rdev_minor, dev_major, dev_minor;
    u64 spare[14];
};
#define STATX_BASIC_STATS 0x7ff

struct dirent64 {
    u64 ino;
    s64 off;
    u16 reclen;
    char type, name[];
};

/* mounts */
#define OPEN_TREE_CLONE 1
#define OPEN_TREE_CLOEXEC O_CLOEXEC
#define MOVE_MOUNT_F_EMPTY_PATH 0x04
#define MOVE_MOUNT_T_EMPTY_PATH 0x40
#define FSOPEN_CLOEXEC 1
#define FSMOUNT_CLOEXEC 1
#define FSCONFIG_SET_FLAG 0
#define FSCONFIG_SET_STRING 1
#define FSCONFIG_SET_FD 5
#define FSCONFIG_CMD_CREATE 6
#define MOUNT_ATTR_RDONLY 0x01
#define MOUNT_ATTR_NOSUID 0x02
#define MOUNT_ATTR_IDMAP 0x00100000
#define MNT_DETACH 2
#define MS_PRIVATE (1 << 18)

struct mount_attr {
    u64 attr_set, attr_clr, propagation, userns_fd;
};

/* processes, signals */
#define CLONE_VM 0x00000100
#define CLONE_VFORK 0x00004000
#define SIGKILL 9
#define SIGCHLD 17
#define SIGCONT 18
#define SIGSTOP 19
#define SIG_BLOCK 0
#define SIG_SETMASK 2
#define SFD_CLOEXEC O_CLOEXEC
#define SFD_NONBLOCK O_NONBLOCK
#define RUSAGE_CHILDREN (-1)
#define WNOHANG 1
#define WUNTRACED 2
#define WEXITED 4
#define WCONTINUED 8
#define WNOWAIT 0x01000000
#define WALL 0x40000000
#define P_ALL 0
#define P_PID 1
#define POLLIN 1
#define POLLRDHUP 0x2000
#define RLIMIT_CORE 4
#define AF_UNIX 1
#define AF_INET 2
#define SOCK_DGRAM 2
#define SOCK_SEQPACKET 5
#define SOCK_CLOEXEC O_CLOEXEC
#define CLOCK_MONOTONIC 1
#define TIMER_ABSTIME 1
#define MSG_DONTWAIT 0x40
#define MSG_NOSIGNAL 0x4000
#define SOL_SOCKET 1
#define SCM_RIGHTS 1

#define PR_SET_PDEATHSIG 1
#define PR_SET_DUMPABLE 4
#define PR_CAPBSET_DROP 24
#define PR_SET_CHILD_SUBREAPER 36
#define PR_SET_NO_NEW_PRIVS 38
#define PR_CAP_AMBIENT 47
#define PR_CAP_AMBIENT_CLEAR_ALL 4
#define CAP_SETPCAP 8

struct timespec {
    s64 sec, nsec;
};

struct itimerspec {
    struct timespec interval, value;
};

/* SIGEV_SIGNAL is 0 */
struct sigevent {
    u64 value;
    int signal, notify;
    char rest[48];
};

struct pollfd {
    int fd;
    short events, revents;
};

struct rlimit {
    u64 soft, hard;
};

struct rusage {
    struct {
        s64 sec, usec;
    } user, system;
    s64 maxrss, rest[13];
};

struct kernel_sigaction {
    void (*handler)(int);
    u64 flags;
    void (*restorer)(void);
    u64 mask;
};

struct iovec {
    void *base;
    size_t bytes;
};
struct msghdr {
    void *name;
    u32 name_bytes;
    struct iovec *pieces;
    size_t count;
    void *control;
    size_t control_bytes;
    int flags;
};
struct one_descriptor { /* a control message */
    size_t bytes;
    int level, type, fd;
};
struct signalfd_siginfo {
    u32 signo;
    int error, code;
    char rest[116];
};

/* Landlock */
#define LANDLOCK_CREATE_RULESET_VERSION 1
#define LANDLOCK_RULE_PATH_BENEATH 1
#define LANDLOCK_RULE_NET_PORT 2
#define LANDLOCK_FS_REFER (1 << 13)
#define LANDLOCK_SCOPE_SIGNAL 2

struct landlock_ruleset_attr {
    u64 fs, net, scoped;
};

struct landlock_path_beneath {
    u64 allowed;
    int fd;
} __attribute__((packed));

struct landlock_net_port {
    u64 allowed, port;
};

/* seccomp */
#define SECCOMP_SET_MODE_FILTER 1

struct sock_fprog {
    u16 len;
    void *filter;
};

/* loopback */
#define SIOCGIFFLAGS 0x8913
#define SIOCSIFFLAGS 0x8914
#define IFF_UP 1

struct ifreq {
    char name[16];
    short flags;
    char rest[22];
};

struct cap_header {
    u32 version;
    int pid;
};

struct cap_data {
    u32 effective, permitted, inheritable;
};
#define CAP_VERSION_3 0x20080522

#endif
