"""The probe: one script that tries every operation of the table from inside a jail and prints what each returned.

It is run by `python3 -c`, so it imports nothing of ours. An answer is "ok" or the name of the errno.
"""

from __future__ import annotations

FILES = r"""
import errno, json, os, stat, sys

outside, *places = sys.argv[1:]

def write(path, flags, text=b"X"):
    fd = os.open(path, flags | os.O_WRONLY, 0o644)
    os.write(fd, text)
    os.close(fd)

def operations(p, o):
    tag = p.replace("/", "_")
    yield "read", lambda: open(p + "/read").read()
    yield "create", lambda: write(p + "/create", os.O_CREAT | os.O_EXCL)
    yield "overwrite", lambda: write(p + "/overwrite", 0)
    yield "append", lambda: write(p + "/append", os.O_APPEND)
    yield "truncate", lambda: os.truncate(p + "/truncate", 0)
    yield "mkdir", lambda: os.mkdir(p + "/mkdir")
    yield "unlink", lambda: os.unlink(p + "/unlink")
    yield "rename", lambda: os.rename(p + "/rename", p + "/renamed")
    yield "across", lambda: os.rename(p + "/a/across", p + "/b/across")
    yield "rename-in", lambda: os.rename(o + "/rename-in" + tag, p + "/renamed-in")
    yield "rename-out", lambda: os.rename(p + "/rename-out", o + "/renamed-out" + tag)
    yield "link", lambda: os.link(p + "/a/link", p + "/b/link")
    yield "link-in", lambda: os.link(o + "/link-in" + tag, p + "/linked-in")
    yield "link-out", lambda: os.link(p + "/link-out", o + "/linked-out" + tag)
    yield "symlink", lambda: os.symlink(o + "/through" + tag, p + "/symlink")
    yield "through", lambda: write(p + "/through", os.O_CREAT)
    yield "fifo", lambda: os.mknod(p + "/fifo", stat.S_IFIFO | 0o600)
    yield "device", lambda: os.mknod(p + "/device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    yield "chmod", lambda: os.chmod(p + "/chmod", 0o600)
    yield "chown", lambda: os.chown(p + "/chown", os.getuid(), os.getgid())
    yield "utime", lambda: os.utime(p + "/utime", (1, 1))
    yield "setxattr", lambda: os.setxattr(p + "/setxattr", "user.corral", b"1")

def answer(attempt):
    try:
        attempt()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "ok"

print(json.dumps({p: {name: answer(attempt) for name, attempt in operations(p, outside)} for p in places}))
"""

OTHERS = r"""
import ctypes, errno, json, os, signal, socket, sys

with_what = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)

def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")

def tcp():
    with socket.create_connection(("127.0.0.1", with_what["tcp"]), 2) as s:
        s.sendall(b"x")

def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", ("127.0.0.1", with_what["udp"]))

def unix(address):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(address)
        s.sendall(b"x")

def bind_tcp():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()

def loopback():
    with socket.create_server(("127.0.0.1", 0)) as s:
        socket.create_connection(s.getsockname(), 2).close()

def bind_unix(address):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(address)
        s.listen()
        with socket.socket(socket.AF_UNIX) as c:
            c.connect(address)

def pair():
    a, b = socket.socketpair()
    a.sendall(b"x")
    assert b.recv(1) == b"x"

def memory():
    read = ctypes.create_string_buffer(8)
    class Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
    local, remote = Vector(ctypes.addressof(read), 8), Vector(with_what["address"], 8)
    checked(libc.process_vm_readv(with_what["pid"], ctypes.byref(local), 1, ctypes.byref(remote), 1, 0))

def processes():
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if int(pid) != os.getpid() and with_what["mark"].encode() in open(f"/proc/{pid}/cmdline", "rb").read():
                return
        except (FileNotFoundError, ProcessLookupError):
            pass
    raise OSError(errno.ESRCH, "")

attempts = {
    "tcp": tcp,
    "udp": udp,
    "unix": lambda: unix(with_what["unix"]),
    "abstract": lambda: unix(chr(0) + with_what["abstract"]),
    "bind": bind_tcp,
    "loopback": loopback,
    "bind-unix": lambda: bind_unix(with_what["bind"]),
    "socketpair": pair,
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0),
    "vsock": lambda: socket.socket(40, socket.SOCK_STREAM),
    "signal-own": lambda: os.kill(os.getpid(), 0),
    "memory": memory,
    "ptrace": lambda: checked(libc.ptrace(16, with_what["pid"], None, None)),
    "processes": processes,
    "key": lambda: open(with_what["key"]).read(),
    "profile": lambda: open(with_what["profile"]).read(),
    "shm": lambda: checked(libc.shmget(with_what["shm"], 0, 0)),
    "temp": lambda: open(with_what["temp"]).read(),
    "signal": lambda: os.kill(with_what["pid"], signal.SIGUSR1),
}

def answer(attempt):
    try:
        attempt()
    except TimeoutError:
        return "ETIMEDOUT"
    except OSError as error:
        return errno.errorcode[error.errno]
    return "ok"

print(json.dumps({name: answer(attempt) for name, attempt in attempts.items()}))
"""
