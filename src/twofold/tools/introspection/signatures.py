"""The signature of any callable, with its annotations evaluated where they were written.

Strings (`from __future__ import annotations`), closures, bound methods, objects with `__call__`,
`functools.partial` and `functools.wraps` all end in one `inspect.Signature` without strings.
"""

import functools
import inspect
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import typing_extensions

from twofold.errors import InvalidSignature

UNREADABLE = (
    *(ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, OSError, RuntimeError),
    *(SyntaxError, TypeError, ValueError),
)
"""What evaluating an annotation may raise, besides NameError: it is an author's expression (`"1 / 0"`)."""

_Resolve: TypeAlias = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Evaluates annotations, given names beyond those of the module."""


def name_callable(function: Callable[..., Any]) -> str:
    """Give the name a person knows a callable by: the function's own, or its class's."""
    if isinstance(function, functools.partial):
        return name_callable(function.func)
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def find_docstring(function: Callable[..., Any]) -> str | None:
    """Give the docstring of any callable: of what a partial calls, of an object's `__call__` or its class."""
    while isinstance(function, functools.partial):  # a partial's own docstring is Python's
        function = function.func
    if inspect.isroutine(function) or isinstance(function, type):
        return inspect.getdoc(function)
    kind = type(function)
    called = inspect.getattr_static(kind, "__call__", None)
    own = getattr(called, "__doc__", None)  # `inspect.getdoc` would inherit "Call self as a function." of `type`
    return inspect.cleandoc(own) if own else inspect.getdoc(kind)


def resolve_signature(function: Callable[..., Any]) -> inspect.Signature:
    """Give a callable's signature with every annotation evaluated, `Annotated` kept.

    What a `functools.partial` binds is left out. Names are looked up in the module, the closure, and the
    enclosing functions that are still running.

    Raises:
        InvalidSignature: An annotation names something that is not defined, or the callable has no
            signature to read (some built-in functions).
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise InvalidSignature(
            f"function {name_callable(function)!r} has no signature to read ({error}); wrap it in a function"
        ) from None
    # inspect makes of what a partial binds by keyword only a default
    bound = set(function.keywords) if isinstance(function, functools.partial) else set()
    parameters = [parameter for name, parameter in signature.parameters.items() if name not in bound]
    annotations = {p.name: p.annotation for p in parameters if p.annotation is not p.empty}
    if signature.return_annotation is not signature.empty:
        annotations["return"] = signature.return_annotation
    hints = _evaluate(annotations, function)
    return signature.replace(
        parameters=[p.replace(annotation=hints.get(p.name, p.empty)) for p in parameters],
        return_annotation=hints.get("return", signature.empty),
    )


def resolve_class(cls: type) -> dict[str, Any]:
    """Evaluate the annotations in a class's body, inherited ones included.

    Raises:
        InvalidSignature: One of them names something that is not defined.
    """
    own = {parameter.__name__: parameter for parameter in getattr(cls, "__type_params__", ())}
    own[cls.__name__] = cls

    def resolve(names: Mapping[str, Any]) -> dict[str, Any]:
        return typing_extensions.get_type_hints(cls, localns={**names, **own}, include_extras=True)

    return _resolve(resolve, place=f"class {cls.__qualname__!r}", written=cls)


def _evaluate(annotations: dict[str, Any], function: Callable[..., Any]) -> dict[str, Any]:
    """Evaluate a signature's annotations where the function was written."""
    written = _find_written(function)
    closure = _read_closure(written)
    module = sys.modules.get(getattr(written, "__module__", None) or "")
    global_names = getattr(written, "__globals__", vars(module) if module else {})
    # get_type_hints reads the annotations of any object; this one carries those of the signature in force,
    # which differ from the function's own after functools.partial and functools.wraps.
    carrier = types.SimpleNamespace(__annotations__=annotations)

    def resolve(names: Mapping[str, Any]) -> dict[str, Any]:
        local_names = {**names, **closure}
        return typing_extensions.get_type_hints(carrier, global_names, local_names, include_extras=True)

    return _resolve(resolve, place=f"function {name_callable(function)!r}", written=written)


def _resolve(resolve: _Resolve, *, place: str, written: Any) -> dict[str, Any]:
    """Evaluate annotations; look among the callers' variables only where the module has no such name."""
    try:
        try:
            return resolve({})
        except NameError:
            return resolve(_find_enclosing_locals(written))
    except NameError as error:
        raise InvalidSignature(
            f"{place}: an annotation names {error.name!r}, which is not defined in module"
            f" {written.__module__!r} at run time; import it there (not only under TYPE_CHECKING)"
            " or define it before"
        ) from error
    except UNREADABLE as error:
        raise InvalidSignature(
            f"{place}: an annotation cannot be evaluated: {type(error).__name__}: {error}; write one that Python can"
        ) from error


def _find_written(function: Any) -> Any:
    """Find the function in whose source the annotations of a callable's signature stand."""
    while not isinstance(function, types.FunctionType) or (
        hasattr(function, "__wrapped__") and not hasattr(function, "__signature__")
    ):
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, types.MethodType):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, type):
            function = inspect.getattr_static(function, "__init__")
        elif isinstance(inspect.getattr_static(type(function), "__call__", None), types.FunctionType):
            function = type(function).__call__
        else:
            break
    return function


def _read_closure(function: Any) -> dict[str, Any]:
    """Give the variables of enclosing functions that a function itself uses, and its type parameters."""
    code = getattr(function, "__code__", None)
    cells = getattr(function, "__closure__", None) or ()
    names = {parameter.__name__: parameter for parameter in getattr(function, "__type_params__", ())}
    for name, cell in zip(code.co_freevars if code else (), cells, strict=False):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not assigned yet, such as the function's own name while it is decorated
            continue
    return names


def _find_enclosing_locals(thing: Any) -> dict[str, Any]:
    """Give the local variables of the running function in which a function or class was written.

    A decorator runs while the enclosing function does, so its frame is still among the callers.
    """
    outer, separator, _ = getattr(thing, "__qualname__", "").rpartition(".<locals>.")
    frame = inspect.currentframe()
    while separator and frame is not None:
        if frame.f_code.co_qualname == outer and frame.f_globals.get("__name__") == thing.__module__:
            return dict(frame.f_locals)
        frame = frame.f_back
    return {}
