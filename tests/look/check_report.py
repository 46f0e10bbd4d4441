#!/usr/bin/env python3
"""Checks a report in headless Chromium at desktop and phone widths: check_report.py FULL.html RUNNING.html EMPTY.html
MNIST.html

Full: every section is filled, each chart has a curve of at least two points at two places, hovering, zooming by mouse
and keyboard, hiding, smoothing and the axes work. All: no horizontal overflow, no console messages, light and dark.
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
    wide = page.evaluate("""[...document.querySelectorAll('body *')].filter((e) => {
        const r = e.getBoundingClientRect();
        return r.right > innerWidth + 1 && r.width && !e.closest('.scroll, nav, .skip');
    }).map((e) => e.tagName + '.' + e.getAttribute('class')).join(' ')""")
    check(f"{name}: these stick out: {wide}", not wide)
    check(f"{name}: the console says {page.errors()}", not page.errors())


def charts(page, name):
    counts = page.evaluate("""[...document.querySelectorAll('.chart')].map((c) => {
        const d = [...c.querySelectorAll('path.line')].map((p) => p.getAttribute('d').split(/[ML]/).slice(1));
        return [c.querySelector('h3').textContent, Math.max(0, ...d.map((p) => new Set(p).size)),
                d.flat().some((p) => /NaN|Infinity/.test(p)), c.querySelector('svg').getBoundingClientRect().height];
    })""")
    check(f"{name}: there are {len(counts)} charts", len(counts) >= 5)
    for title, points, broken, height in counts:
        check(f"{name}: chart {title} has {points} different points", points >= 2)
        check(f"{name}: chart {title} has points that are no numbers", not broken)
        check(f"{name}: chart {title} is {height} px high", height > 150)
    for title in ["Loss", "Accuracy", "Auroc", "Learning rate", "Throughput (steps/s)"]:
        check(f"{name}: there is no chart {title}", any(c[0].lower() == title.lower() for c in counts))


def sections(page, name):
    for section in ["summary", "curves", "images", "confusion", "model", "configuration", "environment"]:
        check(f"{name}: {section} is hidden", page.evaluate(f"!document.getElementById('{section}').hidden"))
    page.wait("[...document.images].every((i) => i.complete)")
    check(f"{name}: an image is empty", page.evaluate("[...document.images].every((i) => i.naturalWidth > 50)"))
    check(f"{name}: 10 x 10 cells", page.evaluate("document.querySelectorAll('.matrix td').length") == 100)
    environment = page.evaluate("document.getElementById('env').textContent")
    for word in ["Levin", "SIMD target", "Threads", "Processor"]:
        check(f"{name}: the environment does not name {word}", word in environment)


def use(page, name):
    """Tests hovering, dragging, keys and buttons on the first chart."""
    first = "document.querySelector('.chart')"
    page.evaluate(f"{first}.scrollIntoView({{block: 'center'}})")
    box = page.evaluate(f"""(() => {{ const r = {first}.querySelector('svg').getBoundingClientRect();
                                      return [r.left, r.top, r.width, r.height]; }})()""")
    y, at = box[1] + box[3] / 2, lambda share: box[0] + box[2] * share
    tip = lambda: page.evaluate(f"(t => t.hidden ? '' : t.textContent)({first}.querySelector('.tip'))")
    labels = lambda: page.evaluate(f"[...{first}.querySelectorAll('text')].map((t) => t.textContent).join(' ')")
    for share in [0.02, 0.5, 0.99]:
        page.mouse("mouseMoved", at(share), y)
        check(f"{name}: hovering at {share} tells {tip()!r}", tip().startswith("Step ") and "train" in tip())
        inside = page.evaluate(f"""(() => {{ const t = {first}.querySelector('.tip').getBoundingClientRect();
                                             return t.left >= 0 && t.right <= innerWidth; }})()""")
        check(f"{name}: the tip at {share} is not inside the page", inside and page.overflow() <= 0)
    before = labels()
    page.mouse("mousePressed", at(0.4), y, button="left", clickCount=1)
    page.mouse("mouseMoved", at(0.6), y, button="left", buttons=1)
    page.mouse("mouseReleased", at(0.6), y, button="left", clickCount=1)
    check(f"{name}: dragging does not zoom", labels() != before)
    page.evaluate(f"{first}.querySelector('.small').click()")
    check(f"{name}: the button does not show all again", labels() == before)
    page.evaluate(f"{first}.querySelector('svg').focus()")
    page.mouse("mouseMoved", 1, 1)
    page.key("ArrowRight")
    one = tip()
    page.key("ArrowRight")
    check(f"{name}: arrows tell {one!r}, then {tip()!r}", one.startswith("Step ") and tip() not in ("", one))
    page.key("+")
    check(f"{name}: + does not zoom", labels() != before)
    page.key("Escape")
    check(f"{name}: Esc does not reset", labels() == before)
    page.evaluate("document.querySelector('[data-axis=time]').click()")
    check(f"{name}: the time axis is like the step axis", labels() != before)
    page.evaluate("document.querySelector('[data-axis=step]').click()")
    paths = lambda: page.evaluate(f"{first}.querySelectorAll('path.line').length")
    count = paths()
    page.evaluate("(s => { s.value = 0.8; s.dispatchEvent(new Event('input')); })(document.getElementById('smooth'))")
    check(f"{name}: smoothing draws no second curve", paths() == count + 1)
    page.evaluate(f"{first}.querySelector('.legend button').click()")
    check(f"{name}: hiding a curve leaves it", paths() == count - 1)
    page.evaluate("document.querySelector('.matrix td').focus()")
    told = page.evaluate("document.querySelector('.matrix p').textContent")
    check(f"{name}: a cell tells {told!r}", "T-shirt recognised" in told)
    check(f"{name}: the console says {page.errors()}", not page.errors())


full, running, empty, mnist = [pathlib.Path(a).resolve().as_uri() for a in sys.argv[1:5]]
with Browser() as browser:
    for width in [1280, 390]:
        for dark in [False, True]:
            name = f"{width} px{', dark' if dark else ''}"
            page = browser.open(full, width, dark=dark)
            common(page, name)
            charts(page, name)
            sections(page, name)
            back = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]")
            check(f"{name}: the background is {back}", back < 60 if dark else back > 200)
        use(page, name)
        page = browser.open(running, width)
        common(page, f"{width} px, running")
        state = page.evaluate("document.getElementById('status').textContent")
        check(f"{width} px: the status is {state}", state == "Running")
        page = browser.open(empty, width)
        common(page, f"{width} px, empty")
        says = page.evaluate("document.getElementById('charts').textContent")
        check(f"{width} px: with no data it says {says!r}", "No values yet" in says)
        page = browser.open(mnist, width)
        name = f"{width} px, mnist"
        common(page, name)
        page.wait("[...document.images].every((i) => i.complete)")
        for section in ["summary", "curves", "images", "confusion", "model", "environment"]:
            check(f"{name}: {section} is hidden", page.evaluate(f"!document.getElementById('{section}').hidden"))
        tiles = page.evaluate("[...document.querySelectorAll('.tile .name')].map((t) => t.textContent).join(' ')")
        check(f"{name}: the first values are {tiles!r}", tiles.startswith(("test_loss test_acc", "test_acc test_loss")))
print("the report: failed" if failures else "the report: ok")
sys.exit(1 if failures else 0)
