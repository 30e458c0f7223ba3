"""How a step reads what a tool said."""

import json
import os
import sys


def required(name):
    """A setting that `cargo xtask test` hands in."""
    value = os.environ.get(name)
    if not value:
        sys.exit(f"set {name}; `cargo xtask test --only clients` does")
    return value


def check(holds, problem):
    """`assert` that `python -O` keeps."""
    if not holds:
        raise AssertionError(problem)


async def answer(call_tool, name, arguments):
    """A success: its text is the JSON of its structured content."""
    result = await call_tool(name, arguments)
    check(not result.is_error, f"{name} was refused: {result.content}")
    check(len(result.content) == 1, f"{name}: one text")
    check(json.loads(result.content[0].text) == result.structured_content, f"{name}: text and structured content differ")
    return result.structured_content


async def refused(call_tool, name, arguments):
    """A refusal: its one text."""
    result = await call_tool(name, arguments)
    check(result.is_error, f"{name} was not refused: {result}")
    return result.content[0].text
