"""The pictures of this folder, out of a report that `make demo-spark` left.

    python docs/pipeline/pictures.py build/demo-spark/report.html

Each SVG gets the page's style, so that it stands by itself. report.png is a photograph of the page:

    chromium --headless --window-size=1080,1560 --screenshot=report.png build/demo-spark/report.html
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

NAMES = ("fairness", "delays", "latency")


def main() -> int:
    page = Path(sys.argv[1]).read_text()
    style = page[page.index("<style>") + 7 : page.index("</style>")]
    colours = style[: style.index("body {")].replace(":root", "svg")
    shapes = style[style.index("svg text {") : style.index(".key span")]
    own = f"{colours}svg {{ font: 12px system-ui, sans-serif; }}\n{shapes}"
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    for name, picture in zip(NAMES, pictures, strict=True):
        whole = picture.replace("</title>", f"</title><style>{own}</style>", 1)
        Path(__file__).with_name(f"{name}.svg").write_text(whole + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
