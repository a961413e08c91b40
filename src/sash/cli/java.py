"""Find the Java that Spark needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .errors import RunError

__all__ = ["GET_JAVA", "OLDEST_JAVA", "Java", "find_java", "need_java"]

OLDEST_JAVA = 17
GET_JAVA = "apt-get install openjdk-17-jre-headless, brew install openjdk@17, or adoptium.net"


@dataclass(frozen=True)
class Java:
    """A Java program, and its version; 0 if the version is unknown."""

    path: str
    major: int


def find_java() -> Java | None:
    """The Java that Spark would start: from JAVA_HOME, or else from the PATH."""
    home = os.environ.get("JAVA_HOME")
    if home:
        path: str | None = str(Path(home) / "bin" / "java")
        if not os.access(str(path), os.X_OK):
            return None
    else:
        path = shutil.which("java")
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return Java(path, int(found[1]) if found else 0)


def need_java() -> None:
    """Raise RunError if Spark cannot start on this machine."""
    found = find_java()
    if found is not None and found.major >= OLDEST_JAVA:
        return
    home = os.environ.get("JAVA_HOME")
    if found is not None:
        what = f"{found.path} is Java {found.major}"
    elif home:
        what = f"JAVA_HOME is {home}, which has no bin/java"
    else:
        what = "there is no java on the PATH, and JAVA_HOME is not set"
    raise RunError(
        f"Spark needs Java {OLDEST_JAVA} or newer, and {what}; get it with {GET_JAVA}, or run "
        "without Spark: sash run --local"
    )
