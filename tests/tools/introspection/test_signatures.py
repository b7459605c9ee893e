"""The signature of any callable, its annotations evaluated where they were written."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest

from twofold.errors import InvalidSignature
from twofold.tools.introspection.signatures import (
    find_docstring,
    name_callable,
    resolve_class,
    resolve_signature,
)

HINTS = {"a": int, "b": Annotated[str, "note"], "return": type(None)}


def resolve_hints(function: Any) -> dict[str, Any]:
    """Give the annotations of a signature by name, the result's under `return`."""
    signature = resolve_signature(function)
    named = {one.name: one.annotation for one in signature.parameters.values()} | {
        "return": signature.return_annotation
    }
    return {name: annotation for name, annotation in named.items() if annotation is not inspect.Signature.empty}


def plain(a: int, b: Annotated[str, "note"]) -> None:
    """Plain."""


class Things:
    """Things."""

    def method(self, a: int, b: Annotated[str, "note"]) -> None:
        """Method."""

    @classmethod
    def of_class(cls, a: int, b: Annotated[str, "note"]) -> None: ...

    @staticmethod
    def static(a: int, b: Annotated[str, "note"]) -> None: ...

    def __call__(self, a: int, b: Annotated[str, "note"]) -> None:
        """Call."""


class Inherited(Things): ...


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def three(a: int, x: float, b: Annotated[str, "note"]) -> None: ...


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (plain, "plain"),
        (Things().method, "method"),
        (Things.of_class, "of_class"),
        (Things.static, "static"),
        (Things(), "Things"),
        (Inherited(), "Inherited"),
        (logged(plain), "plain"),
        (logged(logged(Things().method)), "method"),
        (functools.partial(three, x=1.0), "three"),
        (functools.partial(lambda: None), "<lambda>"),
        (functools.partial(functools.partial(Things().method)), "method"),
        (logged(functools.partial(three, x=1.0)), "wrapper"),
    ],
)
def test_hints_of_any_callable_are_resolved(function: Any, name: str) -> None:
    """Any callable can be a tool: functions, methods, objects, partials, wrapped ones."""
    if name != "<lambda>":
        hints = resolve_hints(function)
        hints.pop("x", None)
        assert hints == HINTS
    assert name_callable(function) == name


def test_what_a_partial_binds_is_left_out() -> None:
    """A bound argument, by position or by name, is no parameter of the tool."""
    assert list(resolve_signature(functools.partial(three, 1)).parameters) == ["x", "b"]
    assert list(resolve_signature(functools.partial(three, x=1.0)).parameters) == ["a", "b"]
    assert list(resolve_signature(functools.partial(plain, 1, b="b")).parameters) == []


def test_explicit_signature_counts() -> None:
    """A decorator that sets `__signature__` says itself what its function takes."""

    @functools.wraps(plain)
    def wrapper(*args: Any) -> None: ...

    wrapper.__signature__ = inspect.Signature(
        [inspect.Parameter("c", inspect.Parameter.KEYWORD_ONLY, annotation="list[int]")]
    )
    assert resolve_hints(wrapper) == {"c": list[int]}


def test_local_names_are_found_while_their_function_runs() -> None:
    """Classes local to a function resolve, in closures and in the enclosing function."""

    class Local(TypedDict):
        more: list[Local]

    def closed(a: Local) -> Any:
        return Local

    def takes(a: Local, b: Later | None) -> Local: ...

    class Later: ...

    assert resolve_hints(closed) == {"a": Local, "return": Any}
    assert resolve_hints(takes) == {"a": Local, "b": Later | None, "return": Local}
    assert resolve_class(Local) == {"more": list[Local]}


def test_undefined_name_is_refused_with_function_and_name() -> None:
    """An annotation that cannot be resolved is an error at registration that names both."""

    def broken(a: Missing) -> None: ...  # noqa: F821

    with pytest.raises(InvalidSignature, match=r"function 'broken'.* names 'Missing', which is not defined"):
        resolve_hints(broken)


@pytest.mark.parametrize("annotation", ["int or", "1 | 'x'", "int.missing"])
def test_annotation_that_is_no_expression_is_refused(annotation: str) -> None:
    """Broken annotations are refused at registration too, with Python's own words."""

    def broken(a: Any) -> None: ...

    broken.__annotations__["a"] = annotation
    with pytest.raises(InvalidSignature, match="function 'broken': an annotation cannot be evaluated"):
        resolve_hints(broken)


def test_callable_without_a_signature_is_refused() -> None:
    """Some built-in functions do not say what they take."""
    with pytest.raises(InvalidSignature, match="function 'vars' has no signature to read"):
        resolve_signature(vars)


def test_docstring_of_any_callable_is_found() -> None:
    """The text of a partial's function, of an object's call, of a wrapped function."""
    assert find_docstring(functools.partial(plain, 1)) == "Plain."
    assert find_docstring(Things()) == "Call."
    assert find_docstring(Inherited()) == "Call."
    assert find_docstring(logged(plain)) == "Plain."
    assert find_docstring(Things().method) == "Method."
    assert find_docstring(Things.static) is None
