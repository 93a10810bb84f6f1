"""Failure: what a tool raises to say no; and every other error told as one."""

from __future__ import annotations

import errno

from corral import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    Code = Literal[
        "path_outside_sandbox",
        "file_not_found",
        "permission_denied",
        "edit_not_unique",
        "edit_no_change",
        "edit_not_found",
        "edit_overlap",
        "old_text_empty",
        "timeout",
        "binary_file",
        "file_too_large",
        "invalid_regex",
        "stale_file",
        "command_blocked",
        "command_hardline",
        "command_denied",
        "command_repeated",
        "approval_required",
        "invalid_args",
        "canceled",
        "conflict",
        "global_cap_exceeded",
        "resource_limit",
        "not_enforceable",
        "io_error",
        "internal_error",
    ]


class Failure(Exception):
    """One clear line, a code of the table, and what to do instead. ``meta``, ``risk`` and ``classification`` go into
    the response as they would with success."""

    def __init__(
        self,
        message: str,
        code: Code,
        suggestion: str = "",
        *,
        meta: dict[str, Any] | None = None,
        risk: str = "",
        classification: str = "",
        result: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.suggestion = suggestion
        self.meta = meta or {}
        self.risk = risk
        self.classification = classification
        self.result = result


def invalid(message: str, suggestion: str = "") -> Failure:
    return Failure(message, "invalid_args", suggestion)


# ---- other errors ----

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EFBIG)
BAD_NAME = (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.EILSEQ)


def told(error: Exception, path: str = "") -> Failure:
    """An error of the layers below as a failure; ``path`` is used where the error does not know it."""
    if isinstance(error, Failure):
        return error
    for kind, tell in TELLERS:
        if isinstance(error, kind):
            return tell(error, _path_of(error) or path)
    return Failure(f"internal error: {type(error).__name__}: {error}", "internal_error")


def _path_of(error: Exception) -> str:
    found = getattr(error, "path", None) or getattr(error, "filename", None)
    return found if isinstance(found, str) else ""


def _escape(error: Exception, path: str) -> Failure:
    if "symbolic link" in str(error):
        return Failure(f"blocked: mutation path contains symlink component: {path}", "path_outside_sandbox")
    return Failure(f"blocked: {path} is outside working directory", "path_outside_sandbox")


def _policy(error: Exception, path: str) -> Failure:
    grant = getattr(error, "grant", None)
    rule = getattr(error, "rule", None)
    suggestion = f"a person can allow it: {grant}" if grant else f"the rule is: {rule}" if rule else ""
    return Failure(f"blocked: {error}", "permission_denied", suggestion)


def _os_error(error: Exception, path: str) -> Failure:
    number = getattr(error, "errno", None)
    why = getattr(error, "strerror", None) or str(error)
    code: Code = (
        "resource_limit" if number in NO_ROOM else "invalid_args" if number in BAD_NAME else "io_error"
    )
    return Failure(f"{why}: {path}" if path else str(why), code)


# The first row that fits decides.
TELLERS: tuple[tuple[type[Exception], Callable[[Exception, str], Failure]], ...] = (
    (errors.BadPath, lambda error, path: invalid(str(error))),
    (
        errors.SensitivePath,
        lambda error, path: Failure(f"blocked: sensitive path: {path}", "path_outside_sandbox"),
    ),
    (errors.PathEscape, _escape),
    (
        errors.LinkLoop,
        lambda error, path: Failure(
            f"blocked: symlink target is outside the sandbox: {path}", "path_outside_sandbox"
        ),
    ),
    (errors.StaleFile, lambda error, path: Failure(str(error), "stale_file", "read the file again")),
    (errors.NotAFile, lambda error, path: invalid(f"not a regular file: {path}")),
    (errors.FileTooLarge, lambda error, path: Failure(str(error), "file_too_large")),
    (errors.CommandNotFound, lambda error, path: Failure(str(error), "file_not_found")),
    (errors.NotEnforceable, lambda error, path: Failure(str(error), "not_enforceable")),
    (errors.PolicyError, lambda error, path: Failure(str(error), "permission_denied")),
    (errors.CorralError, _policy),
    (FileNotFoundError, lambda error, path: Failure(f"file not found: {path}", "file_not_found")),
    (PermissionError, lambda error, path: Failure(f"permission denied: {path}", "permission_denied")),
    (FileExistsError, lambda error, path: Failure(f"already there: {path}", "conflict")),
    (TimeoutError, lambda error, path: Failure(str(error) or "the time was up", "timeout")),
    (OSError, _os_error),
    (MemoryError, lambda error, path: Failure("not enough memory", "resource_limit")),
    (UnicodeEncodeError, lambda error, path: invalid("a text has half a character in it (a lone surrogate)")),
)
