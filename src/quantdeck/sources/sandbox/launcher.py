"""Give up everything an analysis does not need, then become its engine. Run as a program, by a bare interpreter.

    python -I -S launcher.py PARENT LEVEL [x:FILE | r:FILE | w:FILE | d:FOLDER]… -- PROGRAM ARGUMENT…

Nothing but the standard library, and little of it: every execution waits for this. Landlock binds the thread that
asks for it and what that becomes, which is why this is a program of its own and not something the server does. What
cannot be had is a failure here, never a weaker cage. `LEVEL` alone says what is asked for: `full`; `host`, for a
program of ours that starts an engine, and so may start programs; or `none`, which is limits without a cage.

The filter of system calls is a list of what is allowed. Three things in it are worth a word. `clone3` hides its flags
from a filter, so it is answered as if the kernel did not have it, and libc falls back to `clone`, which may make
threads only. `execve` is allowed for the one pointer that this program passes. Memory that is executable comes from
files only, and the files that can be opened are the engine's own: no code is made while an engine runs, unless an
operator wants the JIT (`LEVEL` `full+jit`).
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys

TYPE_CHECKING = False  # what only annotations want is not imported: every execution would wait for it
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CPU_S = 34
"""Longer than the longest analysis: an engine that has lost its parent ends even so."""

_ARCHES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}

_CALLS = """
futex 202 98|read 0 63|write 1 64|mmap 9 222|munmap 11 215|mprotect 10 226|madvise 28 233|mremap 25 216|brk 12 214
close 3 57|fstat 5 80|newfstatat 262 79|stat 4 -|lstat 6 -|statx 332 291|lseek 8 62|pread64 17 67|readv 19 65
writev 20 66|open 2 -|openat 257 56|access 21 -|faccessat 269 48|faccessat2 439 439|readlink 89 -|readlinkat 267 78
getcwd 79 17|getdents64 217 61|poll 7 -|ppoll 271 73|epoll_create1 291 20|epoll_ctl 233 21|epoll_wait 232 -
epoll_pwait 281 22|eventfd2 290 19|pipe2 293 59|dup 32 23|dup3 292 24|fcntl 72 25|ioctl 16 29|rt_sigaction 13 134
rt_sigprocmask 14 135|rt_sigreturn 15 139|sigaltstack 131 132|restart_syscall 219 128|nanosleep 35 101
clock_nanosleep 230 115|clock_gettime 228 113|clock_getres 229 114|gettimeofday 96 169|time 201 -|getpid 39 172
gettid 186 178|getppid 110 173|getuid 102 174|geteuid 107 175|getgid 104 176|getegid 108 177|uname 63 160
sysinfo 99 179|getrandom 318 278|getrusage 98 165|getrlimit 97 163|prlimit64 302 261|prctl 157 167|arch_prctl 158 -
set_tid_address 218 96|set_robust_list 273 99|rseq 334 293|membarrier 324 283|sched_yield 24 124
sched_getaffinity 204 123|sched_getparam 143 121|sched_getscheduler 145 120|timerfd_create 283 85
timerfd_settime 286 86|socketpair 53 199|sendto 44 206|recvfrom 45 207|exit 60 93|exit_group 231 94|tgkill 234 131
clone 56 220|clone3 435 435|execve 59 221
"""

_LD, _JEQ, _JSET, _RET = 0x20, 0x15, 0x45, 0x06  # instructions: load a word, jump if equal, jump if any bit, return
_ALLOW, _REFUSE, _UNKNOWN = 0x7FFF0000, 0x00050001, 0x00050026  # EPERM, ENOSYS
_NUMBER, _ARCH = 0, 4  # where they stand in what a filter is shown

_PROT_EXEC, _MAP_ANONYMOUS, _CLONE_THREAD, _AF_UNIX = 4, 0x20, 0x10000, 1
_NAMESPACES = 0x7E020080
_IOCTLS = (0x5421, 0x5401, 0x5413, 0x5451, 0x5450)  # blocking or not, whether a terminal, its size, close on exec
_PRCTLS = (15, 16, 0x53564D41)  # a thread's name, and that of a piece of memory

_libc = ctypes.CDLL(None, use_errno=True)
_libc.execve.argtypes = [ctypes.c_void_p] * 3

Instruction = tuple[int, int, int, int]


def main(arguments: list[str]) -> None:
    parent, level = int(arguments[0]), arguments[1]
    split = arguments.index("--")
    _limits()
    _prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
    if parent and os.getppid() != parent:
        raise OSError("the server ended meanwhile")
    os.closerange(3, 4096)
    program = arguments[split + 1 :]
    line = _Line(program)
    if level != "none":
        _landlock(arguments[2:split])
    if level.startswith("full"):
        _seccomp(line, jit=level.endswith("+jit"))
    line.become()


def _limits() -> None:
    for what, most in (
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_FSIZE, 2**20),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(what, (most, most))


def _prctl(what: int, value: int) -> None:
    if sys.platform != "linux":
        return  # where there is no cage either
    if _libc.prctl(what, ctypes.c_ulong(value), 0, 0, 0):
        raise OSError(f"prctl {what}: {os.strerror(ctypes.get_errno())}")


class _Line:
    """A program and its arguments, laid out in memory before the filter that names the place."""

    def __init__(self, program: list[str]) -> None:
        self._words = [word.encode() for word in program]
        # LC_CTYPE is this interpreter's own addition
        said = {name: value for name, value in os.environ.items() if name != "LC_CTYPE"}
        self._environment = [f"{name}={value}".encode() for name, value in said.items()]
        self._argv, self._envp = _pointers(self._words), _pointers(self._environment)
        self._path = ctypes.create_string_buffer(self._words[0])
        self.address = ctypes.addressof(self._path)

    def become(self) -> None:
        _libc.execve(self.address, ctypes.addressof(self._argv), ctypes.addressof(self._envp))
        raise OSError(f"{self._words[0].decode()}: {os.strerror(ctypes.get_errno())}")


def _pointers(words: list[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * (len(words) + 1))(*words, None)


# Landlock: files that may be read or run, and nothing else of the file system, the network or other processes.


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


_EXECUTE, _WRITE, _READ, _LIST = 1, 2, 4, 8
_RIGHTS = {"x": _READ | _EXECUTE, "r": _READ, "w": _READ | _WRITE, "d": _READ | _LIST}


def _landlock(rules: list[str]) -> None:
    version = _call(444, 0, 0, 1)
    if version < 1:
        raise OSError("this kernel has no Landlock")
    rights = 0x1FFF | (version >= 2) << 13 | (version >= 3) << 14 | (version >= 5) << 15
    said = _Ruleset(rights, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _call(444, ctypes.addressof(said), size, 0)
    if ruleset < 0:
        raise OSError("Landlock refuses a set of rules")
    for rule in rules:
        kind, _, path = rule.partition(":")
        try:
            held = os.open(path.replace("/proc/self/", f"/proc/{os.getpid()}/"), os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        beneath = _Beneath(_RIGHTS[kind], held)
        if _call(445, ruleset, 1, ctypes.addressof(beneath), 0):
            raise OSError(f"Landlock refuses a rule: {path}")
        os.close(held)
    _prctl(38, 1)  # PR_SET_NO_NEW_PRIVS
    if _call(446, ruleset, 0):
        raise OSError("Landlock refuses to restrict this process")
    os.close(ruleset)


def _call(number: int, *arguments: int) -> int:
    return int(_libc.syscall(number, *map(ctypes.c_ulong, arguments)))


# The filter of system calls.


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("filter", ctypes.c_void_p))


def _seccomp(line: _Line, *, jit: bool) -> None:
    code = list(_filter(os.uname().machine, line.address, jit=jit))
    held = (_Instruction * len(code))(*(_Instruction(*one) for one in code))
    program = _Program(len(code), ctypes.addressof(held))
    if _libc.prctl(22, ctypes.c_ulong(2), ctypes.c_void_p(ctypes.addressof(program)), 0, 0):
        raise OSError(f"this kernel refuses a filter of system calls: {os.strerror(ctypes.get_errno())}")


def _filter(machine: str, program: int, *, jit: bool) -> Iterator[Instruction]:
    if machine not in _ARCHES:
        raise OSError(f"there is no filter of system calls for {machine}")
    arch, column = _ARCHES[machine]
    yield from ((_LD, 0, 0, _ARCH), (_JEQ, 1, 0, arch), (_RET, 0, 0, 0x80000000), (_LD, 0, 0, _NUMBER))
    rules = _rules(program, jit=jit)
    for name, *numbers in (entry.split() for line in _CALLS.split("\n") if line for entry in line.split("|")):
        if numbers[column] != "-":
            body = list(rules.get(name, [(_RET, 0, 0, _ALLOW)]))
            yield (_JEQ, 0, len(body), int(numbers[column]))
            yield from body
    yield (_RET, 0, 0, _REFUSE)


def _rules(program: int, *, jit: bool) -> dict[str, list[Instruction]]:
    """What is asked of arguments, by call."""
    return {
        "clone": [*_with_bits(0, _CLONE_THREAD), *_without(0, _NAMESPACES, refuse=True)],
        "clone3": [(_RET, 0, 0, _UNKNOWN)],
        "execve": [*_equal(0, program & 0xFFFFFFFF), *_equal(0, program >> 32, high=True), (_RET, 0, 0, _ALLOW)],
        "tgkill": [*_equal(0, os.getpid()), (_RET, 0, 0, _ALLOW)],
        "socketpair": [*_equal(0, _AF_UNIX), (_RET, 0, 0, _ALLOW)],
        "sendto": [*_equal(4, 0), *_equal(4, 0, high=True), (_RET, 0, 0, _ALLOW)],  # to nobody but its own pair
        "prlimit64": [*_equal(2, 0), *_equal(2, 0, high=True), *_own(), (_RET, 0, 0, _ALLOW)],  # look, change nothing
        "ioctl": _one_of(1, _IOCTLS),
        "prctl": _one_of(0, _PRCTLS),
        **({} if jit else _NOTHING_TO_RUN),
    }


def _own() -> list[Instruction]:
    return [(_LD, 0, 0, 16), (_JEQ, 2, 0, 0), (_JEQ, 1, 0, os.getpid()), (_RET, 0, 0, _REFUSE)]


def _equal(argument: int, value: int, *, high: bool = False) -> list[Instruction]:
    """Refuse unless half of an argument is this."""
    return [(_LD, 0, 0, 16 + 8 * argument + 4 * high), (_JEQ, 1, 0, value), (_RET, 0, 0, _REFUSE)]


def _one_of(argument: int, values: Iterable[int]) -> list[Instruction]:
    known = list(values)
    jumps = [(_JEQ, len(known) - place, 0, value) for place, value in enumerate(known)]
    return [(_LD, 0, 0, 16 + 8 * argument), *jumps, (_RET, 0, 0, _REFUSE), (_RET, 0, 0, _ALLOW)]


def _with_bits(argument: int, bits: int) -> list[Instruction]:
    """Refuse without these bits."""
    return [(_LD, 0, 0, 16 + 8 * argument), (_JSET, 1, 0, bits), (_RET, 0, 0, _REFUSE)]


def _without(argument: int, bits: int, *, refuse: bool = False) -> list[Instruction]:
    """Allow without these bits; with them refuse, or go on to what follows."""
    last = [(_RET, 0, 0, _REFUSE)] if refuse else []
    return [(_LD, 0, 0, 16 + 8 * argument), (_JSET, 1, 0, bits), (_RET, 0, 0, _ALLOW), *last]


_NOTHING_TO_RUN = {
    "mmap": [*_without(2, _PROT_EXEC), *_without(3, _MAP_ANONYMOUS, refuse=True)],
    "mprotect": _without(2, _PROT_EXEC, refuse=True),
}
"""Memory that is written and then run is refused; a file that the loader maps is not."""


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Exception as failure:  # noqa: BLE001 - whatever it was, nothing may run
        os.write(2, f"launcher: {failure}\n".encode())
    os._exit(126)
