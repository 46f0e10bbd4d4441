#!/usr/bin/env python3
"""Builds the documentation as a site in build/site: tools/site/build.py, called by ./run docs.

The pages are plain Markdown that reads as well in the repository. They are copied to a folder of their own, where links to
files outside docs/ lead to copies of these files (Markdown as pages, sources highlighted), so that every link works
without the repository. Sphinx renders the copies, and check_links() follows every link of the result.
"""
import html.parser
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

import pygments
import pygments.formatters
import pygments.lexers

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
STAGE = ROOT / "build/site-pages"
SITE = ROOT / "build/site"
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)#\s]+)(#[^)\s]*)?(\))")
IMAGE = re.compile(r'(<img src=")([^"]+)(")')


def staged(path):
    """Returns the path of a file's copy below the stage and the site, without what the site appends."""
    if path == DOCS / "README.md":
        return "index.md"
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    name = "tree/" + path.relative_to(ROOT).as_posix()
    if path.is_dir():
        return name + "/index.html"
    return name if path.suffix in (".md", ".png", ".svg") else name + ".html"


class Stage:
    """Copies pages, and collects what they link to."""

    def __init__(self):
        self.todo, self.done, self.sources = [], set(), {}

    def add(self, path):
        if path not in self.done:
            self.done.add(path)
            self.todo.append(path)

    def target(self, page, link):
        """Returns where a link of a page leads in the stage; None for links to other hosts."""
        if "://" in link or link.startswith("mailto:"):
            return None
        path = (page.parent / link).resolve()
        if not path.exists() or not path.is_relative_to(ROOT):
            sys.exit(f"error: {page.relative_to(ROOT)} links to {link}, which does not exist")
        if path.suffix in (".md", ".png", ".svg"):
            self.add(path)
        else:
            self.sources[staged(path)] = path
        up = "../" * staged(page).count("/")
        return up + staged(path)

    def copy(self, page):
        out = STAGE / staged(page)
        out.parent.mkdir(parents=True, exist_ok=True)
        if page.suffix != ".md":
            shutil.copy(page, out)
            return

        def link(match):
            target = self.target(page, match[2])
            if target is None:
                return match[0]
            if target.endswith(".html"):  # none of Sphinx's pages
                return f'<a href="{target}">{match[1][1:-2]}</a>'
            return f"{match[1]}{target}{match[3] or ''}{match[4]}"

        code, lines = False, []
        for line in page.read_text().split("\n"):
            if line.startswith("```"):
                code = not code
            elif not code:
                line = IMAGE.sub(lambda m: m[1] + (self.target(page, m[2]) or m[2]) + m[3], LINK.sub(link, line))
            lines.append(line)
        out.write_text("\n".join(lines))

    def run(self):
        for page in sorted(DOCS.rglob("*.md")):
            self.add(page)
        while self.todo:
            self.copy(self.todo.pop())


def write_index(pages):
    """Adds the tree of all pages to the site's first one, docs/README.md."""
    trees, heading = [], None
    for line in pages:
        if not line.startswith(" "):
            heading = line
            trees.append(f"```{{toctree}}\n:caption: {heading}\n:hidden:\n:maxdepth: 1\n")
        else:
            trees[-1] += f"\n{line.strip()}"
    with open(STAGE / "index.md", "a", encoding="utf-8") as f:
        f.write("\n\n" + "\n```\n\n".join(trees) + "\n```\n")


def write_sources(sources):
    """Writes highlighted copies of the sources that pages link to, and lists of folders."""
    for name, path in sources.items():
        out, title = SITE / name, path.relative_to(ROOT).as_posix()
        out.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            rows = "".join(f"<li>{p.name}{'/' if p.is_dir() else ''}</li>" for p in sorted(path.iterdir()))
            out.write_text(f"<!doctype html><meta charset=utf-8><title>{title}</title><h1>{title}</h1><ul>{rows}</ul>")
            continue
        try:
            lexer = pygments.lexers.get_lexer_for_filename(path.name.replace(".cuh", ".cu"))
        except pygments.util.ClassNotFound:
            lexer = pygments.lexers.TextLexer()
        formatter = pygments.formatters.HtmlFormatter(full=True, title=title, linenos="table")
        out.write_text(pygments.highlight(path.read_text(errors="replace"), lexer, formatter))


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.anchors = [], set()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors.update(v for k in ("id", "name") if (v := attrs.get(k)))
        target = attrs.get("href" if tag in ("a", "link") else "src" if tag in ("img", "script") else "")
        if target:
            self.links.append(target)


def check_links():
    """Returns the number of links of the site's pages; ends the program if one leads nowhere. The API reference's own
    pages are Doxygen's; links into it are followed."""
    parsed, broken, count = {}, [], 0

    def parse(path):
        if path not in parsed:
            parsed[path] = Links()
            parsed[path].feed(path.read_text(errors="replace"))
        return parsed[path]

    for page in sorted(SITE.rglob("*.html")):
        if page.is_relative_to(SITE / "api" / "html") or page.is_relative_to(SITE / "tree") or page.name == "genindex.html":
            continue
        for link in parse(page).links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or link.startswith("//"):
                if parts.scheme in ("http", "https") and not link.startswith(("https://", "http://")):
                    broken.append(f"{page}: {link}")
                continue
            count += 1
            target = (page.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else page
            if not target.is_file():
                broken.append(f"{page.relative_to(SITE)} links to {link}, which is not there")
            elif parts.fragment and target.suffix == ".html" and parts.fragment not in parse(target).anchors:
                broken.append(f"{page.relative_to(SITE)} links to {link}, whose heading is not there")
    if broken:
        sys.exit("error: " + "\nerror: ".join(broken))
    return count


def main():
    shutil.rmtree(STAGE, ignore_errors=True)
    STAGE.mkdir(parents=True)
    stage = Stage()
    stage.run()
    pages = [line for line in (ROOT / "tools/site/pages.txt").read_text().splitlines() if line and line[0] != "#"]
    listed = {line.strip() for line in pages}
    others = sorted(path.relative_to(STAGE).with_suffix("").as_posix()
                    for folder in ("silicon", "tree") for path in (STAGE / folder).rglob("*.md"))
    pages += [f"  {page}" for page in others if page not in listed]
    write_index(pages)
    for file in ("conf.py", "site.css"):
        shutil.copy(ROOT / "tools/site" / file, STAGE)
    done = subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", STAGE, SITE])
    if done.returncode:
        sys.exit("error: Sphinx warned (above).")
    write_sources(stage.sources)
    print(f"{len(list(STAGE.rglob('*.md')))} pages, {check_links()} links are right: build/site/index.html")


if __name__ == "__main__":
    main()
