# Runs once, when the image of the interpreter is made: it imports what programs commonly use and leaves behind the
# function that answers one request. The host then copies the interpreter's whole memory, and every request starts from
# that copy. What a program does to this module, to builtins or to any other module is therefore gone afterwards.
import sys
import builtins
import posix
import gc
import marshal
import types
import importlib.machinery
import linecache
import traceback
import json
import math
import re
import datetime
import itertools
import functools
import collections
import collections.abc
import statistics
import decimal
import fractions
import string
import random
import typing
import dataclasses
import enum
import copy
import operator
import time
import base64
import hashlib
import uuid
import textwrap
import urllib.parse


def _prepare():
    FILE = "<code>"
    AT_ONCE = 1 << 16
    VARARGS = 4
    KEYWORDS = 8
    ANNOTATIONS = 1 << 24  # compile as after "from __future__ import annotations": they are text, and never evaluated
    read = posix.read
    stdout = sys.stdout
    join = "".join
    load, dump = marshal.loads, marshal.dumps
    decode = json.JSONDecoder().scan_once
    Function = types.FunctionType

    def default(value):
        raise TypeError(f"a value of type {type(value).__name__} has no form in JSON")

    encode = json.encoder.c_make_encoder(
        {}, default, json.encoder.encode_basestring, None, ":", ",", False, False, False)

    # The program's own module. It is entered under its name for those who look there (dataclasses do).
    module = types.ModuleType("user_code")
    sys.modules["user_code"] = module
    names = module.__dict__
    names["__builtins__"] = __builtins__

    # What functions of this sort are written with, and often without an import of it. They stand among the builtins, so that
    # the program's own names are its own.
    for name in typing.__all__:
        setattr(builtins, name, getattr(typing, name))
    for known in (json, re, math, typing):
        setattr(builtins, known.__name__, known)

    # Some programs mean the module by datetime, and others the class in it. What nobody has imported is both.
    class Datetime(types.ModuleType):
        def __getattr__(self, name):
            return getattr(self.datetime, name)

        def __call__(self, *args, **keywords):
            return self.datetime(*args, **keywords)

        def __instancecheck__(self, value):
            return isinstance(value, self.datetime)

        def __subclasscheck__(self, kind):
            return issubclass(kind, self.datetime)

    builtins.datetime = Datetime("datetime", datetime.__doc__)
    builtins.datetime.__dict__.update(datetime.__dict__)
    builtins.timedelta, builtins.timezone = datetime.timedelta, datetime.timezone

    # random is put back by whoever imports it first, and seeded then: most programs never do.
    class Seeding:
        seed = b""
        used = False

        def find_spec(self, name, path=None, target=None):
            if name == "random":
                return importlib.machinery.ModuleSpec(name, self)

        def create_module(self, spec):
            return random

        def exec_module(self, module):
            self.used = True
            reseed(self.seed)

    seeding = Seeding()
    reseed, state_of = random.seed, random.getstate
    del sys.modules["random"]
    sys.meta_path.insert(0, seeding)

    # statistics has random already, and would draw from one that nobody seeded.
    class Seeded:
        def __getattr__(self, name):
            import random
            return getattr(random, name)

    statistics.random = Seeded()

    def clip(text, limit):
        return text if len(text) <= limit else text[:limit] + " ..."

    def line_of(error):
        if isinstance(error, SyntaxError) and error.filename == FILE:
            return error.lineno or 0
        line, tb = 0, error.__traceback__
        while tb is not None:
            if tb.tb_frame.f_code.co_filename == FILE:
                line = tb.tb_lineno
            tb = tb.tb_next
        return line

    def failure(error, source):
        # Only frames of the program are shown, with its own lines.
        linecache.cache[FILE] = (len(source), None, source.splitlines(True), FILE)
        tb = error.__traceback__
        while tb is not None and tb.tb_frame.f_code.co_filename != FILE:
            tb = tb.tb_next
        try:
            shown = join(traceback.format_exception(type(error), error, tb, limit=-20))
        except BaseException:
            shown = ""
        try:
            message = str(error)
        except BaseException:
            message = "(the exception has no readable message)"
        report = type(error).__name__, clip(message, 4000), line_of(error), clip(shown, 16000)
        return json.dumps(report).encode()

    def last_function():
        last, line = None, -1
        for value in names.values():
            inner = value
            if type(value) is not Function:
                inner = getattr(value, "__wrapped__", None)
                if type(inner) is not Function:
                    continue
            code = inner.__code__
            if code.co_filename == FILE and code.co_firstlineno >= line:
                last, line = value, code.co_firstlineno
        return last

    def compiled(source):
        text = source.lstrip()
        while text.startswith("#"):
            text = text.partition("\n")[2].lstrip()
        if text.lstrip("( ").startswith("lambda"):
            before = source[: len(source) - len(text)].count("\n")  # lines are counted from the beginning of the source
            return compile("\n" * before + text.rstrip(), FILE, "eval", ANNOTATIONS, True)
        return compile(source, FILE, "exec", ANNOTATIONS, True)

    # A call passes the input to a function as its parameters ask for it. One that requires one parameter is given the whole
    # input; if it is called main and its parameter like a field of the input, that field, unless it is a name for the whole.
    # One that requires several, or has only keywords, is given the fields of the input that it names.
    WHOLE = frozenset(("args", "data", "event", "input", "input_data", "inputs", "output", "params", "payload", "value"))

    def plain(function, argument):
        return function(argument)

    def bare(function, argument):
        return function()

    def calling(function):
        inner = function
        while hasattr(inner, "__wrapped__"):  # a decorated function takes what it took before
            inner = inner.__wrapped__
        if type(inner) is not Function:
            return plain
        code = inner.__code__
        count, single = code.co_argcount, code.co_kwonlyargcount
        positional = code.co_varnames[:count]
        required = count - len(inner.__defaults__ or ())
        keywords = code.co_varnames[count : count + single]
        needed = [name for name in keywords if name not in (inner.__kwdefaults__ or ())]
        several, rest = code.co_flags & VARARGS, code.co_flags & KEYWORDS
        if not (count or single or several or rest):
            return bare
        name = getattr(inner, "__name__", "the function")
        field = positional[0] if required == 1 and name == "main" and positional[0] not in WHOLE else None
        if not (field or single or count > 1 or rest and not count and not several):
            return plain

        def named(function, argument):
            fields = argument if isinstance(argument, dict) else {}
            whole = required == 1 and field not in fields or several and not count
            if not required and count:
                whole = not any(name in fields for name in positional)
            wanted = ([] if whole else [*positional[:required]]) + needed
            if argument is not fields and argument is not None and (wanted or not whole):
                raise TypeError(f"{name}() takes the fields of an object by name, and the input is of type {type(argument).__name__}")
            missing = [name for name in wanted if name not in fields]
            if missing:
                there = ", ".join(sorted(fields)) or "none"
                raise TypeError(f"{name}() takes the fields of the input by name, and there is no {', '.join(missing)}; there are: {there}")
            given = [argument] if whole else []
            extra = {name: fields[name] for name in keywords if name in fields}
            if not whole:
                only = code.co_posonlyargcount
                for place in positional[:only]:
                    if place not in fields:
                        break
                    given.append(fields[place])
                extra |= {name: fields[name] for name in positional[only:] if name in fields}
                if rest:
                    extra |= {name: value for name, value in fields.items() if name not in positional}
            return function(*given, **extra)

        return named

    # What a function is given whose input has other names besides: its fields, and the whole once more under each name that it has no field
    # for. The names can be asked for and are no items, so that nothing that is made of it has them. An input that is no object has no other
    # place than the names, so that there they are items; where it is handed on as it was given, it is the input that is.
    class Given(dict):
        __slots__ = ("whole", "others")

        def __missing__(self, name):
            if name in self.others:
                return self.whole
            raise KeyError(name)

        def __contains__(self, name):
            return dict.__contains__(self, name) or name in self.others

        def get(self, name, default=None):
            return self[name] if name in self else default

        def __delitem__(self, name):
            if dict.__contains__(self, name) or name not in self.others:
                dict.__delitem__(self, name)

        def pop(self, name, *default):
            if not dict.__contains__(self, name) and name in self.others:
                return self.whole
            return dict.pop(self, name, *default)

    Given.__name__ = Given.__qualname__ = "dict"

    def given(whole, aliases):
        if type(whole) is dict:
            argument = Given(whole)
            argument.others = tuple(name for name in aliases if name not in whole)
        else:
            argument = Given((name, whole) for name in aliases)
            argument.others = ()
        argument.whole = whole
        return argument

    # What a function has returned, with the input in the place of what it was given for it.
    def handed(value):
        if type(value) is Given:
            if value.others or type(value.whole) is dict:
                return dict(value)
            if len(value) and all(item is value.whole for item in value.values()):
                return value.whole
        if isinstance(value, dict):
            return {name: handed(item) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [handed(item) for item in value]
        return value

    # What was loaded: the function, how it is called, and the source.
    function = call = source = None

    def loaded(code, entry):
        nonlocal function, call
        function = eval(code, names)
        if function is None:
            function = names.get(entry)
            if not callable(function):
                function = last_function()
            if function is None:
                raise LookupError("the code defines no function; write def main(data): ...")
        call = calling(function)

    # A request is a tuple whose first item says what is asked: to compile (0), to load (1), to call what was loaded (2),
    # or both (3). Compiling and loading are requests of their own, so that the host can keep what they made before the
    # program has seen any input. The reply is one letter and what belongs to it. Values that marshal knows travel in its
    # form, others as JSON.
    def request():
        nonlocal source
        data = read(0, AT_ONCE)
        if len(data) == AT_ONCE:
            parts = [data]
            while data := read(0, AT_ONCE << 4):
                parts.append(data)
            data = b"".join(parts)
            del parts
        asked, *rest = load(data)
        del data
        kind = b"E"
        try:
            if asked >= 2:
                # Lines are handed out as they are printed, those that the loading has held back first.
                stdout.reconfigure(line_buffering=True)
            if asked == 2:
                seed, aliases, encoded, argument = rest
                seeding.seed = seed
                if seeding.used:
                    reseed(seed)
            elif asked == 3:
                code, source, entry, seeding.seed, aliases, encoded, argument = rest
                loaded(load(code), entry)
            elif asked == 1:
                code, source, entry = rest
                loaded(load(code), entry)
                if seeding.used:
                    # Whoever has drawn a number while loading must draw another the next time.
                    state = state_of()
                    reseed(seeding.seed)
                    if state_of() != state:
                        return b"N"
                return b"L"
            else:
                source, = rest
                return b"C" + dump(compiled(source))
            del rest
            if encoded:
                argument = decode(argument, 0)[0]
            if aliases:
                argument = given(argument, aliases.split(","))
            value = call(function, argument)
            kind = b"J"
            if type(value) is Given:
                value = handed(value)
            try:
                out = dump(value)
                kind = b"v"
            except ValueError:
                if aliases and type(argument.whole) is not dict:
                    value = handed(value)
                out = join(encode(value, 0)).encode()
                kind = b"V"
        except MemoryError:
            return b"M"
        except BaseException as error:
            out = failure(error, source)
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:
            pass
        return kind + out

    return request


def _ready():
    request = _prepare()
    del sys.modules["__main__"]
    # Room for ordinary programs inside the image, so that they never ask the host for more memory.
    bytearray(16 << 20)
    gc.collect()
    gc.freeze()
    posix.write(1, b"%d" % id(request))
    time.time_ns()


_ready()
