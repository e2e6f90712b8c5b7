"""Builds the shipped skills from their sources, and says whether the modules that are checked in are what comes out.

Compilers are no part of Parley: `parley skill build` names what is missing.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from appliance.errors import SkillFault  # noqa: E402
from appliance.skills.library import SHIPPED  # noqa: E402
from appliance.skills.workshop import build  # noqa: E402


def main() -> int:
    failed = 0
    for folder in sorted(SHIPPED.iterdir()):
        if not (folder / "src").is_dir():
            continue
        with tempfile.TemporaryDirectory() as scratch:
            copy = Path(shutil.copytree(folder, Path(scratch) / folder.name))
            try:
                same = build(copy).read_bytes() == (folder / "skill.wasm").read_bytes()
            except SkillFault as fault:
                print(f"{folder.name}: {fault}", file=sys.stderr)
                failed = 1
                continue
        print(f"{folder.name}: {'the same bytes' if same else 'DIFFERENT from what is checked in'}")
        failed |= not same
    return failed


if __name__ == "__main__":
    sys.exit(main())
