"""A program as on a kernel without Landlock: a filter of system calls that answers as such a kernel does.

python no_landlock.py -c CODE        or        python no_landlock.py -m quantdeck ARGUMENT…
"""

from __future__ import annotations

import ctypes
import runpy
import sys

CREATE_RULESET = 444  # on every machine
NO_SUCH_CALL = 0x00050026


class Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("k", ctypes.c_uint32))


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("filter", ctypes.c_void_p))


def forget_landlock() -> None:
    code = (Instruction * 4)(
        Instruction(0x20, 0, 0, 0),
        Instruction(0x15, 0, 1, CREATE_RULESET),
        Instruction(0x06, 0, 0, NO_SUCH_CALL),
        Instruction(0x06, 0, 0, 0x7FFF0000),
    )
    held = Program(len(code), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, ctypes.c_ulong(1), 0, 0, 0) == 0
    assert libc.prctl(22, ctypes.c_ulong(2), ctypes.c_void_p(ctypes.addressof(held)), 0, 0) == 0


if __name__ == "__main__":
    forget_landlock()
    if sys.argv[1] == "-m":
        sys.argv = sys.argv[2:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        exec(sys.argv[2], {"__name__": "__main__"})  # noqa: S102 - it is what the test wrote
