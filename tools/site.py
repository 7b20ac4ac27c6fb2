"""What MkDocs asks while it builds the site: pages of commands and public names, and files outside docs/.

A page links to records, examples and benchmarks by where they lie in the repository (`../../experiments/...`), so
that the links work wherever the page is read; the site gets copies of those files, and the links one `../` less.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import offing
from tools.commands import markdown

ROOT = Path(__file__).parents[1]
SHARED = ("experiments", "benchmarks", "examples", "runtime")
LINK = re.compile(rf"(\]\((?:\.\./)*)\.\./((?:{'|'.join(SHARED)})/[^)#]+)")


def names() -> str:
    """The page of public names, in the order in which the package has them."""
    head = "# Python\n\nThe public names, in the order of the pipeline. Each is reachable as `offing.NAME`.\n\n"
    return head + "".join(f"::: offing.{name}\n\n" for name in offing.__all__)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """The site's files, with the generated pages and every file that a page links to."""
    files.append(File.generated(config, "reference/api.md", content=names()))
    files.append(File.generated(config, "reference/commands.md", content=markdown()))
    wanted = {m[2] for page in (ROOT / "docs").rglob("*.md") for m in LINK.finditer(page.read_text())}
    for name in sorted(wanted):
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(text: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page's text, with links out of docs/ led to the site's copies."""
    del page, config, files
    return LINK.sub(r"\1\2", text)
