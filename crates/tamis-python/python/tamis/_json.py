"""Values of JSON in the form that is equal for equal values; docs/format.md has it."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from .errors import KeyEncodingError, KeyTypeError

__all__ = ["text"]

# As deep as the command reads.
_DEEPEST = 128


def text(value: Any) -> bytes:
    """The text of a string; the canonical form of anything else."""
    try:
        return (value if isinstance(value, str) else _canonical(value, _DEEPEST)).encode()
    except UnicodeEncodeError as error:
        raise KeyEncodingError(f"key: expected text that has UTF-8: {error}") from None


def _canonical(value: Any, levels: int) -> str:
    """Members sorted by name, no blanks, and numbers as exact decimals."""
    if levels == 0:
        raise KeyTypeError(f"key: expected JSON of at most {_DEEPEST} levels, got more")
    if value is None or isinstance(value, (bool, str)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return _number(Decimal(float.__repr__(value)))
    if isinstance(value, (int, Decimal)):
        return _number(Decimal(value))
    if isinstance(value, (list, tuple)):
        return "[" + "".join(_canonical(element, levels - 1) + "," for element in value) + "]"
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise KeyTypeError("key: expected members with names of str, as JSON has them, got others")
        members = (json.dumps(name, ensure_ascii=False) + _canonical(value[name], levels - 1) for name in sorted(value))
        return "{" + "".join(members) + "}"
    raise KeyTypeError(
        "key: expected what json.loads gives (str, int, float, Decimal, bool, None, list, dict), got "
        f"{type(value).__qualname__}"
    )


def _number(number: Decimal) -> str:
    """The sign, the digits without zeros at either end, and the power of ten."""
    sign, digits, power = number.as_tuple()
    if not isinstance(power, int):
        raise KeyTypeError(f"key: expected a number that JSON has, got {number}")
    whole = "".join(map(str, digits)).lstrip("0")
    significant = whole.rstrip("0")
    power += len(whole) - len(significant)
    if not significant:
        return "0"
    return f"{'-' if sign else ''}{significant}" + (f"e{power}" if power else "")
