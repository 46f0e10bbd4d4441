"""Screenshots of the output of mnist, levin_log_demo and the GAN: screenshots.py WORK GAN README OUT. README gets
the three images of the README, OUT those for checks of the layout."""
import html
import pathlib
import re
import sys

from browser import Browser
from small_png import shrink

work, gan, readme, out = (pathlib.Path(a).resolve() for a in sys.argv[1:])

COLORS = {1: "font-weight:700", 2: "opacity:.55", 32: "color:#57d3a0", 36: "color:#6fc3ff"}


class Terminal:
    """A terminal's screen after a stream of bytes: \\r, \\n, colours, cursor up, clearing."""

    def __init__(self):
        self.lines, self.row, self.column, self.style = [[]], 0, 0, ()

    def write(self, text):
        for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[^\x1b]", text):
            if part[0] == "\x1b":
                self.escape(part[-1], part[2:-1])
            elif part == "\r":
                self.column = 0
            elif part == "\n":
                self.row += 1
                self.column = 0
                while len(self.lines) <= self.row:
                    self.lines.append([])
            else:
                line = self.lines[self.row]
                line += [(" ", ())] * (self.column + 1 - len(line))
                line[self.column] = (part, self.style)
                self.column += 1

    def escape(self, kind, number):
        if kind == "m":
            codes = [int(n or 0) for n in number.split(";")]
            self.style = () if 0 in codes else self.style + tuple(codes)
        elif kind == "A":
            self.row -= int(number or 1)
        elif kind in "KJ":
            del self.lines[self.row][self.column:]
            if kind == "J":
                del self.lines[self.row + 1:]

    def html(self):
        rows = []
        for line in self.lines:
            text = ""
            for c, style in line:
                css = ";".join(COLORS[s] for s in style if s in COLORS)
                text += f'<span style="{css}">{html.escape(c)}</span>' if css else html.escape(c)
            rows.append(text)
        return "\n".join(rows).rstrip()


PAGE = """<!doctype html><meta charset=utf-8><style>body{{margin:0;padding:26px;background:#e9edf2}}
div{{background:#12161d;border-radius:11px;box-shadow:0 12px 40px rgba(10,16,28,.28);overflow:hidden}}
p{{margin:0;padding:11px 16px;background:#1d232d}}i{{display:inline-block;width:12px;height:12px;border-radius:50%;
background:#3b4452;margin-right:8px}}pre{{margin:0;padding:16px 20px 20px;color:#dfe6ee;
font:13.5px/1.5 "DejaVu Sans Mono",monospace}}</style><div><p><i></i><i></i><i></i></p><pre>{}</pre></div>"""


def screens(recording, wanted):
    """Returns from a recorded terminal the last screen whose lines satisfy `wanted`, and the final screen."""
    text = (work / recording).read_bytes().decode(errors="replace")  # keeps every \r
    text = re.sub(r"^Script (started|done).*\n?", "", text, flags=re.M)
    screen, found = Terminal(), None
    for part in re.split(r"(?=\r)", text.replace("\r\n", "\n\r")):
        screen.write(part)
        if wanted(["".join(c for c, _ in line) for line in screen.lines]):
            found = screen.html()
    if found is None:
        sys.exit(f"error: no screen of {recording} matches")
    return found, screen.html()


def terminal_image(browser, screen, png, width=1080):
    file = work / f"{png.stem}.html"
    file.write_text(PAGE.format(screen))
    browser.open(file.as_uri(), width, height=100, scale=2).screenshot(png)


def grids_page():
    """Returns a page of the images generated from the same noise before, halfway through and after training."""
    grids = sorted((gan / "grids").glob("epoch_*.png"))
    chosen = [grids[0], grids[len(grids) // 2], grids[-1]]
    figures = "".join(f"<figure><img src='{g.as_uri()}'><figcaption>{g.stem.replace('_', ' ')}</figcaption></figure>"
                      for g in chosen)
    return ("<!doctype html><meta charset=utf-8><style>body{margin:0;padding:20px;display:flex;gap:20px;"
            "font:14px Inter,sans-serif}figure{margin:0;text-align:center}img{width:360px;image-rendering:pixelated}"
            "</style>" + figures)


def readme_images(browser):
    during, _ = screens("mnist.txt", lambda lines: re.match("epoch 4/5 .* 2[0-9][0-9]/", lines[-1]))
    terminal_image(browser, during, readme / "progress.png")
    page = browser.open((work / "runs/mnist/report.html").as_uri(), 1280)
    page.wait("[...document.images].every((i) => i.complete)")
    page.evaluate("for (const part of document.querySelectorAll('#model, #environment, footer')) part.remove()")
    page.screenshot(readme / "report.png")
    page_image(browser, grids_page(), readme / "gan.png")
    for name in ["progress", "report", "gan"]:
        shrink(readme / f"{name}.png")


def page_image(browser, text, png):
    file = work / f"{png.stem}_page.html"
    file.write_text(text)
    page = browser.open(file.as_uri(), 1160, height=100)
    page.wait("[...document.images].every((i) => i.complete)")
    page.screenshot(png)


def layout_images(browser):
    validation, end = screens("demo.txt", lambda lines: any(line.startswith("epoch 2") for line in lines) and
                              lines[-1].startswith("  validation"))
    terminal_image(browser, validation, out / "progress_validation.png")
    terminal_image(browser, end, out / "progress.png")
    for width in [1280, 390]:
        for dark in [False, True]:
            page = browser.open((work / "full/report.html").as_uri(), width, dark=dark, scale=2 if width < 600 else 1)
            page.wait("[...document.images].every((i) => i.complete)")
            page.screenshot(out / f"report_{width}{'_dark' if dark else ''}.png")
        browser.open((work / "empty/report.html").as_uri(), width).screenshot(out / f"report_{width}_empty.png")
    browser.open((gan / "report.html").as_uri(), 1280).screenshot(out / "gan_report_1280.png")
    page = browser.open((work / "full/report.html").as_uri(), 1280)
    box = page.evaluate("(r => [r.left, r.top, r.width, r.height])(document.querySelector('svg').getBoundingClientRect())")
    page.mouse("mouseMoved", box[0] + box[2] * 0.55, box[1] + box[3] / 2)
    page.screenshot(out / "report_hover.png", whole=False)


with Browser() as browser:
    readme_images(browser)
    layout_images(browser)
for file in [*sorted(readme.glob("*.png")), *sorted(out.glob("*.png"))]:
    print(file)
