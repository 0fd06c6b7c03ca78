"""The attempts of ``sampler.py`` as machine code.

Importing this file loads LLVM and compiles the code below, in some 50 ms. The code is written for LLVM
itself: it has a page of integer statements, and a compiler of Python would take ten times as long to load
as it takes to make ten million draws.
"""

import ctypes
from functools import lru_cache

import llvmlite.binding as llvm
import numpy as np

from recordwise.noise.randomness import WordArray
from recordwise.noise.sampler import IntArray, Table

ATTEMPTS = """
define i64 @attempts(ptr %words, i64 %count, ptr %slots, ptr %starts, ptr %quick, ptr %lines, i64 %signed,
                     ptr %out, i64 %room, ptr %undecided, ptr %found) {
begin:
  br label %next

next:  ; attempt i, with this many written and this many of them open
  %i = phi i64 [0, %begin], [%i.next, %refused], [%i.next, %kept]
  %written = phi i64 [0, %begin], [%written, %refused], [%written.next, %kept]
  %open = phi i64 [0, %begin], [%open, %refused], [%open.next, %kept]
  %left = icmp ult i64 %i, %count
  %fits = icmp ult i64 %written, %room
  %goes.on = and i1 %left, %fits
  br i1 %goes.on, label %try, label %end

try:
  %i.next = add i64 %i, 1
  %two.i = shl i64 %i, 1
  %a.place = getelementptr i64, ptr %words, i64 %two.i
  %a = load i64, ptr %a.place
  %b.place = getelementptr i64, ptr %a.place, i64 1
  %b = load i64, ptr %b.place

  ; the row: the slot itself if the coin, still above the slot's bits, is below its threshold, otherwise the other row
  %slot = and i64 %a, 1023
  %entry.place = getelementptr i64, ptr %slots, i64 %slot
  %entry = load i64, ptr %entry.place
  %coin = and i64 %a, 4294967295
  %threshold = and i64 %entry, -1024
  %other = and i64 %entry, 1023
  %own = icmp ult i64 %coin, %threshold
  %row = select i1 %own, i64 %slot, i64 %other

  ; the offset in the block of the row, with the sign in the lowest bit of b
  %quick.place = getelementptr i64, ptr %quick, i64 %row
  %settled = load i64, ptr %quick.place
  %shift = and i64 %settled, 63
  %b.rest = lshr i64 %b, 1
  %down = xor i64 %shift, 63
  %inside = lshr i64 %b.rest, %down
  %start.place = getelementptr i64, ptr %starts, i64 %row
  %start = load i64, ptr %start.place
  %offset = add i64 %start, %inside
  %sign = and i64 %b, %signed
  %negative = sub i64 0, %sign
  %flipped = xor i64 %offset, %negative
  %value = sub i64 %flipped, %negative
  %out.place = getelementptr i64, ptr %out, i64 %written
  store i64 %value, ptr %out.place
  %accept = and i64 %settled, -64
  %at.once = icmp ult i64 %a, %accept
  br i1 %at.once, label %kept, label %by.lines

by.lines:
  %uniform = lshr i64 %a, 32
  %short = call i64 @llvm.umin.i64(i64 %shift, i64 32)
  %cut = sub i64 32, %short
  %b.high = lshr i64 %b, 32
  %b.cut = lshr i64 %b.high, %cut
  %place = shl i64 %b.cut, %cut
  %four = shl i64 %row, 2
  %lower.place = getelementptr i64, ptr %lines, i64 %four
  %lower = load i64, ptr %lower.place
  %lower.fall.place = getelementptr i64, ptr %lower.place, i64 1
  %lower.fall = load i64, ptr %lower.fall.place
  %lower.wide = mul i64 %lower.fall, %place
  %lower.by = lshr i64 %lower.wide, 32
  %below = sub i64 %lower, %lower.by
  %is.below = icmp slt i64 %uniform, %below
  br i1 %is.below, label %kept, label %not.below

not.below:
  %upper.place = getelementptr i64, ptr %lower.place, i64 2
  %upper = load i64, ptr %upper.place
  %upper.fall.place = getelementptr i64, ptr %lower.place, i64 3
  %upper.fall = load i64, ptr %upper.fall.place
  %upper.wide = mul i64 %upper.fall, %place
  %upper.by = lshr i64 %upper.wide, 32
  %above = sub i64 %upper, %upper.by
  %is.open = icmp slt i64 %uniform, %above
  br i1 %is.open, label %undecided.one, label %refused

undecided.one:
  %two.open = shl i64 %open, 1
  %attempt.place = getelementptr i64, ptr %undecided, i64 %two.open
  store i64 %i, ptr %attempt.place
  %position.place = getelementptr i64, ptr %attempt.place, i64 1
  store i64 %written, ptr %position.place
  %open.more = add i64 %open, 1
  br label %kept

kept:
  %open.next = phi i64 [%open, %try], [%open, %by.lines], [%open.more, %undecided.one]
  %written.next = add i64 %written, 1
  br label %next

refused:
  br label %next

end:
  store i64 %open, ptr %found
  ret i64 %written
}

declare i64 @llvm.umin.i64(i64, i64)
"""


def compile_module(code: str) -> llvm.ExecutionEngine:
    """Return the machine code of a module.

    It lives as long as the returned engine.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3
    )
    module = llvm.parse_assembly(code)
    module.verify()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


_engine = compile_module(ATTEMPTS)
_pointer, _integer = ctypes.c_void_p, ctypes.c_int64
_attempts = ctypes.CFUNCTYPE(
    _integer, _pointer, _integer, *[_pointer] * 4, _integer, _pointer, _integer, _pointer, _pointer
)(_engine.get_function_address("attempts"))


def attempt(table: Table, words: WordArray, out: IntArray) -> tuple[int, IntArray]:
    """The same as ``recordwise.noise.sampler.attempt``, statement by statement."""
    undecided, found = np.empty((words.size // 2, 2), dtype=np.int64), ctypes.c_int64()
    written = _attempts(
        address(words),
        words.size // 2,
        *_addresses(table),
        int(table.side.signed),
        address(out),
        out.size,
        address(undecided),
        ctypes.addressof(found),
    )
    return written, undecided[: found.value]


@lru_cache(maxsize=256)
def _addresses(table: Table) -> tuple[int, ...]:
    rows: list[WordArray | IntArray] = [table.slots, table.starts, table.quick, table.lines]
    return tuple(address(row) for row in rows)


def address(array: WordArray | IntArray) -> int:
    """Return the address of a contiguous array's first element."""
    if not array.flags.c_contiguous or array.itemsize != 8:
        raise ValueError("machine code reads contiguous arrays of 64-bit words")
    return int(array.__array_interface__["data"][0])
