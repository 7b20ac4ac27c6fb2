"""Pages in a headless browser: laid out at several widths at once, in frames, and measured by a script."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

WIDTHS = (400, 1_100, 1_600)
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
SCRIPT = """
function cut(frame, width) {
  const page = frame.contentDocument, found = [], ticks = [];
  const say = (what, element) =>
    found.push(what + ': <' + element.tagName.toLowerCase() + '> ' + element.textContent.trim().slice(0, 60));
  const root = page.documentElement;
  if (root.scrollWidth > width) found.push('the page is ' + root.scrollWidth + ' px wide');
  for (const element of page.body.querySelectorAll('*')) {
    const box = element.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    const scroller = element.closest('.scroll'), inside = element.ownerSVGElement;
    if (!scroller && !inside && (box.right > width + 1 || box.left < -1)) say('beyond the edge', element);
    if (element === scroller && width >= 1100 && element.scrollWidth > element.clientWidth + 1)
      say('cut off by ' + (element.scrollWidth - element.clientWidth) + ' px', element);
    const drawing = element.closest('svg');
    if (drawing && element.tagName === 'text') {
      const room = drawing.getBoundingClientRect();
      if (box.right > room.right + 2 || box.left < room.left - 2 || box.bottom > room.bottom + 2 ||
          box.top < room.top - 2) say('beyond its picture', element);
    }
    const mark = frame.contentWindow.getComputedStyle(element, '::before').content;
    const good = element.querySelector('span') || element;
    if (mark.includes('\\u2713')) ticks.push(good.textContent.trim());
  }
  return {problems: found, ticks: ticks};
}
window.onload = () => {
  const all = [...document.querySelectorAll('iframe')].map(frame =>
    ({page: frame.dataset.page, width: frame.clientWidth, ...cut(frame, frame.clientWidth)}));
  const out = document.createElement('pre');
  out.id = 'measured';
  out.textContent = JSON.stringify(all);
  document.body.append(out);
};
"""


def measure(pages: dict[str, Path], folder: Path) -> list[dict]:
    """What is wrong with each page at each width: `page`, `width`, `problems` in sentences, and `ticks`."""
    frames = [
        f'<iframe data-page="{name}" style="border:0;width:{width}px;height:2000px" '
        f'srcdoc="{html.escape(path.read_text())}"></iframe>'
        for name, path in pages.items()
        for width in WIDTHS
    ]
    harness = folder / "harness.html"
    harness.write_text(f"<!doctype html><meta charset=utf-8><script>{SCRIPT}</script>{''.join(frames)}")
    shown = _run(folder, "--dump-dom", "--virtual-time-budget=20000", harness)
    found = re.search(r'<pre id="measured">(.*?)</pre>', shown, re.DOTALL)
    assert found is not None, shown[-500:]
    return json.loads(html.unescape(found[1]))


def screenshot(page: Path, width: int, height: int, out: Path) -> None:
    """A picture of the page at that width; narrow windows are not to be had, so it stands in a frame."""
    frame = f'<body style="margin:0"><iframe style="border:0;width:{width}px;height:{height}px" srcdoc="'
    harness = out.with_suffix(".html")
    harness.write_text(f'<!doctype html><meta charset=utf-8>{frame}{html.escape(page.read_text())}"></iframe>')
    _run(out.parent, f"--window-size={max(width, 500)},{height}", f"--screenshot={out}", harness)
    harness.unlink()


def _run(folder: Path, *arguments: object) -> str:
    assert BROWSER is not None
    flags = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={folder / 'user'}",
    )
    command = [BROWSER, *flags, *map(str, arguments[:-1]), Path(str(arguments[-1])).as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=True).stdout
