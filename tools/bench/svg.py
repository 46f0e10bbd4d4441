"""Writes SVG text: a card that is as readable on a dark page as on a light one, in one file.

An image on GitHub cannot know the page's background, so the card brings its own; its colours follow the reader's system.
Widths of texts are estimated from the font size, a little generously, so that labels can be placed without overlaps.
"""
import html

WIDTH = 720
STYLE = """
svg { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
.card { fill: #ffffff; stroke: #d1d9e0; }
text { fill: #1f2328; }
.title { font-size: 16px; font-weight: 600; }
.muted { fill: #59636e; font-size: 12px; }
.small { font-size: 11.5px; }
.grid { stroke: #e4e8ec; }
.axis { stroke: #818b98; }
.roof { stroke: #1f2328; stroke-width: 2; fill: none; stroke-linejoin: round; }
.blue { fill: #0969da; }
.orange { fill: #d1570c; }
.green { fill: #1a7f37; }
.purple { fill: #8250df; }
.dot { stroke: #ffffff; stroke-width: 1; }
@media (prefers-color-scheme: dark) {
  .card { fill: #0d1117; stroke: #3d444d; }
  text { fill: #f0f6fc; }
  .muted { fill: #9198a1; }
  .grid { stroke: #262c36; }
  .axis { stroke: #656c76; }
  .roof { stroke: #f0f6fc; }
  .blue { fill: #4493f8; }
  .orange { fill: #f0883e; }
  .green { fill: #3fb950; }
  .purple { fill: #ab7df8; }
  .dot { stroke: #0d1117; }
}
"""


def text_width(text, size=13.0):
    """An estimate in pixels, from the widths of letters in common sans-serif fonts."""
    narrow, wide = set("iljtfrI.,:;'|()[]/ -"), set("mwMW%@")
    return sum(0.36 if c in narrow else 0.9 if c in wide else 0.66 if c.isupper() or c.isdigit() else 0.6 for c in text) * size


def shorten(text, width, size=13.0):
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "…", size) > width:
        text = text[:-1]
    return text.rstrip() + "…"


def wrap(text, width, size=13.0):
    lines = [""]
    for word in text.split():
        if lines[-1] and text_width(f"{lines[-1]} {word}", size) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def number(value):
    return f"{value:.1f}".removesuffix(".0")


class Drawing:
    """Collects shapes; coordinates are pixels from the upper left corner."""

    def __init__(self, height, title, description):
        self.height = height
        self.parts = []
        self.title, self.description = title, description

    def add(self, tag, content=None, **attributes):
        words = "".join(f' {name.rstrip("_").replace("_", "-")}="{number(v) if isinstance(v, float) else html.escape(str(v))}"'
                        for name, v in attributes.items())
        self.parts.append(f"<{tag}{words}/>" if content is None else f"<{tag}{words}>{content}</{tag}>")

    def line(self, x1, y1, x2, y2, kind):
        self.add("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=kind)

    def text(self, x, y, words, kind="", anchor="start", **attributes):
        self.add("text", html.escape(words), x=float(x), y=float(y), class_=kind, text_anchor=anchor, **attributes)

    def heading(self, subtitle_lines):
        """Writes the title and the lines below it; returns the first free y."""
        self.text(20, 32, self.title, "title")
        subtitle_lines = [line for words in subtitle_lines for line in wrap(words, WIDTH - 40, 12)]
        for i, line in enumerate(subtitle_lines):
            self.text(20, 53 + 17 * i, line, "muted")
        return 53 + 17 * len(subtitle_lines)

    def render(self):
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" width="{WIDTH}" '
                f'height="{self.height}" role="img" aria-labelledby="title description">')
        return "\n".join([head, f'<title id="title">{html.escape(self.title)}</title>',
                          f'<desc id="description">{html.escape(self.description)}</desc>', f"<style>{STYLE}</style>",
                          f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{self.height - 1}" rx="8"/>',
                          *self.parts, "</svg>"]) + "\n"
