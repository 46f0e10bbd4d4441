#!/usr/bin/env python3
"""Plays films in headless Chromium at desktop and phone widths: check_film.py CONFLICTS.html RACES.html

CONFLICTS is the film of the transposition's second rung, RACES that of the tour's kernel without barriers. Every frame
is shown, and the buttons and keys work. All: no sideways overflow, no console messages, light and dark.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))
from browser import Browser  # noqa: E402

failures = []


def check(what, ok):
    if not ok:
        failures.append(what)
        print("FAILED:", what)


def common(page, name):
    check(f"{name}: {page.overflow()} px of sideways overflow", page.overflow() <= 0)
    check(f"{name}: the console says {page.errors()}", not page.errors())


def frames(page):
    """Shows every frame and returns for each what the page tells of lanes and memory."""
    return page.evaluate("""(() => {
        const text = (id) => document.getElementById(id).textContent, out = [];
        for (let f = 0; f < film.frames; f++) {
            show(f);
            out.push({lanes: text('lanes'), shared: text('shared-note'), global: text('global'),
                      hot: [...document.querySelectorAll('.banks .hot')].map((b) => b.textContent),
                      races: document.querySelectorAll('.words .race').length,
                      lines: document.querySelectorAll('.src.now').length,
                      values: [...document.querySelectorAll('.words i')].map((c) => c.textContent)});
        }
        return out;
    })()""")


def use(page, name):
    """Tests the buttons, the slider, the keys, the choice of a warp and the value of a word."""
    at = lambda: page.evaluate("document.getElementById('count').textContent").split()[1]
    click = lambda what: page.evaluate(f"document.querySelector('{what}').click()")
    click("#first")
    click("#next")
    check(f"{name}: the next step is {at()}", at() == "2")
    page.evaluate("document.activeElement.blur()")
    page.key("ArrowRight")
    page.key("ArrowRight")
    page.key("ArrowLeft")
    check(f"{name}: the arrows lead to {at()}", at() == "3")
    page.key("End")
    last = page.evaluate("film.frames")
    check(f"{name}: End leads to {at()}", at() == str(last))
    page.evaluate("(s => { s.value = 27; s.dispatchEvent(new Event('input')); })(document.getElementById('slider'))")
    check(f"{name}: the slider leads to {at()}", at() == "28")
    hot = "document.querySelectorAll('.banks .hot').length"
    check(f"{name}: {page.evaluate(hot)} banks have conflicts", page.evaluate(hot) == 8)
    click(".warp:nth-child(3) button")
    check(f"{name}: {page.evaluate(hot)} banks have conflicts with warp 2", page.evaluate(hot) == 1)
    click(".warp:nth-child(3) button")
    click(".words i")
    told = page.evaluate("document.getElementById('told').textContent")
    check(f"{name}: a word tells {told!r}", told.startswith("buffer[0][0] lies in bank 0: 0, written by lane 0 of warp 0"))
    page.evaluate("(s => { s.value = 25; s.dispatchEvent(new Event('change')); })(document.getElementById('speed'))")
    click("#first")
    page.key(" ")
    page.wait("document.getElementById('count').textContent.split(' ')[1] > 3")
    page.key(" ")
    stopped = at()
    check(f"{name}: playing ended at {stopped}", page.evaluate("timer") == 0 and int(stopped) < last)


conflicts, races = [pathlib.Path(a).resolve().as_uri() for a in sys.argv[1:3]]
with Browser() as browser:
    for width in [1280, 390]:
        for dark in [False, True]:
            name = f"{width} px{', dark' if dark else ''}"
            page = browser.open(conflicts, width, dark=dark)
            common(page, name)
            back = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]")
            check(f"{name}: the background is {back}", back < 60 if dark else back > 200)
        seen = frames(page)
        check(f"{name}: a frame without a line", all(f["lines"] for f in seen))
        check(f"{name}: no frame has 8 conflicts of 32 words", any(f["hot"] == ["32"] * 8 for f in seen))
        check(f"{name}: no lane reads with a conflict", any("reads buffer: 32-way conflict" in f["lanes"] for f in seen))
        check(f"{name}: no sectors", any("8 warps write 32 sectors" in f["global"] for f in seen))
        use(page, name)
        common(page, name + ", used")
        page = browser.open(races + "#12", width)
        common(page, name + ", races")
        check(f"{name}: the address leads elsewhere", page.evaluate("frame") == 11)
        seen = frames(page)
        check(f"{name}: no race", any(f["races"] == 32 and "32 words in a race" in f["shared"] for f in seen))
        check(f"{name}: the last values are {seen[-1]['values'][:2]}", seen[-1]["values"][:2] == ["NaN", "NaN"])
        common(page, name + ", races, shown")
print("films: failed" if failures else "films: ok")
sys.exit(1 if failures else 0)
