"""Try what nothing in the cage may do, and say of each whether it was possible. Run in the cage, as an engine would be.

    python -I -S -B probe.py SERVER CANARY PORT

A raw program without any engine's manners: what is refused here is refused by the kernel.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from collections.abc import Callable, Iterator
from functools import partial

_libc = ctypes.CDLL(None, use_errno=True)
_COLUMN = {"x86_64": 0, "aarch64": 1}.get(os.uname().machine, 0)

_SOCKETS = (
    ("TCP", 2, 1), ("UDP", 2, 2), ("Unix", 1, 1), ("IPv6", 10, 1), ("netlink", 16, 3), ("packet", 17, 3),
)  # fmt: skip

_CALLS: dict[str, tuple[tuple[int, int], tuple[int | str, ...]]] = {
    "ptrace": ((101, 117), (16, "server", 0, 0)),
    "process_vm_readv": ((310, 270), ("server", "vector", 1, "vector", 1, 0)),
    "pidfd_open": ((434, 434), ("server", 0)),
    "memfd_create": ((319, 279), ("name", 0)),
    "io_uring_setup": ((425, 425), (1, "zeros")),
    "userfaultfd": ((323, 282), (0,)),
    "bpf": ((321, 280), (0, "zeros", 72)),
    "keyctl": ((250, 219), (0, -3, 1)),
    "unshare": ((272, 97), (0x10000000,)),
    "mount": ((165, 40), ("name", "name", "name", 0, 0)),
    "setns": ((308, 268), (0, 0)),
    "perf_event_open": ((298, 241), ("zeros", 0, -1, -1, 0)),
    "vfork": ((58, 220), (0x4111, 0, 0, 0, 0)),
    "kill": ((62, 129), ("server", 0)),
    "tkill": ((200, 130), ("server", 0)),
    "tgkill": ((234, 131), ("server", "server", 0)),
    "chroot": ((161, 51), ("root",)),
    "setuid": ((105, 146), (65534,)),
}


def attempts(server: int, canary: str, port: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each by its name; it is refused if it raises."""
    folder = os.path.dirname(canary)
    for name, path in {
        "read a file": canary,
        "read /etc/passwd": "/etc/passwd",
        "read its own environment": "/proc/self/environ",
        "read the server's environment": f"/proc/{server}/environ",
        "read the server's memory": f"/proc/{server}/mem",
        "read the server's command": f"/proc/{server}/cmdline",
    }.items():
        yield name, partial(os.open, path, os.O_RDONLY)
    yield "list the root", lambda: os.listdir("/")
    yield "list its folder", lambda: os.listdir(folder)
    yield "write a file", lambda: os.open(f"{folder}/written", os.O_WRONLY | os.O_CREAT)
    yield "write into /tmp", lambda: os.open("/tmp/written", os.O_WRONLY | os.O_CREAT)  # noqa: S108
    yield "make a folder", lambda: os.mkdir(f"{folder}/made")
    yield "remove a file", lambda: os.unlink(canary)
    yield "link a file", lambda: os.symlink(canary, f"{folder}/link")
    yield "truncate a file", lambda: os.truncate(canary, 0)
    yield "run a shell", lambda: os.execv("/bin/sh", ["sh", "-c", "true"])
    yield "run itself", lambda: os.execv(sys.executable, [sys.executable, "-c", "pass"])
    yield "fork", _fork
    yield "raise a limit", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    yield "raise a limit of the server", lambda: resource.prlimit(server, resource.RLIMIT_CORE, (0, 0))
    yield "map executable memory", lambda: _mapped(7)
    yield "make memory executable", lambda: _made_executable(_mapped(3))
    yield "hold more descriptors", lambda: _other_descriptors(canary)
    yield "have another environment", _other_environment
    for name, family, kind in _SOCKETS:
        yield f"a socket: {name}", partial(_system, (41, 198), family, kind, 0)
    yield "connect", lambda: _connect(port)
    for name, (numbers, given) in _CALLS.items():
        yield name, partial(_system, numbers, *(_argument(one, server) for one in given))


def _fork() -> None:
    if not os.fork():
        os._exit(0)


_zeros = ctypes.create_string_buffer(256)
_name = ctypes.create_string_buffer(b"/tmp")
_root = ctypes.create_string_buffer(b"/")
_held = ctypes.create_string_buffer(16)


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


_vector = _Vector(ctypes.addressof(_held), 16)


def _argument(one: int | str, server: int) -> int:
    places = {"zeros": _zeros, "name": _name, "root": _root, "vector": _vector}
    return server if one == "server" else ctypes.addressof(places[one]) if isinstance(one, str) else one


def _system(numbers: tuple[int, int], *arguments: int) -> int:
    ctypes.set_errno(0)
    told = _libc.syscall(numbers[_COLUMN], *(ctypes.c_long(one) for one in arguments))
    if told < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return int(told)


def _mapped(protection: int) -> int:
    _libc.mmap.restype = ctypes.c_void_p
    place = _libc.mmap(None, ctypes.c_size_t(4096), protection, 0x22, -1, ctypes.c_long(0))
    if place is None or place == ctypes.c_void_p(-1).value:
        raise OSError("refused")
    return int(place)


def _made_executable(place: int) -> None:
    if _libc.mprotect(ctypes.c_void_p(place), ctypes.c_size_t(4096), 5):
        raise OSError("refused")


def _other_descriptors(canary: str) -> None:
    for number in range(3, 64):
        try:
            os.fstat(number)
        except OSError:
            continue
        return
    raise OSError(f"none beside 0, 1 and 2: {canary}")


def _other_environment() -> None:
    if os.environ.keys() <= {"HOME", "NO_COLOR", "TZ", "LC_CTYPE"}:
        raise OSError("no other")


def _connect(port: int) -> None:
    import _socket

    _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM).connect(("127.0.0.1", port))


def main(server: int, canary: str, port: int) -> None:
    for name, attempt in attempts(server, canary, port):
        try:
            attempt()
        except (OSError, ValueError, ImportError):
            word = "refused"
        else:
            word = "possible"
        os.write(1, f"{word} {name}\n".encode())
    os.write(1, b"done\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
