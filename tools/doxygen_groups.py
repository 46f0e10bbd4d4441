"""Prepares headers for Doxygen. In Levin's headers a comment above several declarations without empty lines between them
describes all of them; Doxygen wants such declarations in a group. Line numbers stay the same.

    /// Number of elements, and of dimensions.      ->   /** @{ */ /// Number ...
    int64_t numel() const;
    int dim() const;
                                                    ->   /** @} */

Lines of a comment that are indented further, such as formulas and code, keep their form: Markdown wants four spaces
more.

A kernel's table that has no comment gets that of its arguments, which is the contract:

    extern constinit Kernel<void(const SortArgs&, Stream&)> sort, topk;    ->   /** @{ @copydoc SortArgs */ extern ...
"""
import re

COMPOUND = re.compile(r"\s*(template\s*<.*>\s*)?(class|struct|union|enum|namespace)\b(?!.*\)\s*(const)?\s*;)")
TABLE = re.compile(r"extern constinit Kernel<void\(const (\w+)&, Stream&\)>")


def indent(line):
    return len(line) - len(line.lstrip())


def is_comment(line):
    return line.lstrip().startswith("//") and not line.lstrip().startswith("///<")


def run_end(lines, start, depth):
    """Returns the line after the declarations that follow a comment: up to an empty line, a comment of the same
    indentation, or the end of the enclosing block."""
    i = start
    while i < len(lines):
        line = lines[i]
        if i > start and indent(line) <= depth and is_comment(line):
            return i
        if not line.strip() or indent(line) < depth or line.lstrip().startswith(("#", "}  // namespace")):
            return i
        i += 1
    return i


def grouped(lines):
    """Returns the lines of a header with groups, as shown above."""
    out, closed = list(lines), set()
    for i in range(2, len(lines)):
        if (table := TABLE.match(lines[i])) and "};" in (lines[i - 1], lines[i - 2]):
            end = next(k for k in range(i, len(lines)) if lines[k].endswith(";"))
            out[i] = f"/** @{{ */ /** @copydoc {table[1]} */ {lines[i]}"
            out[end] += " /** @} */"
    i = 0
    while i < len(lines):
        if not is_comment(lines[i]):
            i += 1
            continue
        begin, depth = i, indent(lines[i])
        while i < len(lines) and is_comment(lines[i]) and indent(lines[i]) == depth:
            i += 1
        if i == len(lines) or not lines[i].strip() or indent(lines[i]) != depth or lines[i].lstrip()[0] in "#}":
            continue
        for k in range(begin, i):
            out[k] = re.sub(r"^(\s*)//(?!/)", r"\1///", out[k])
            out[k] = re.sub(r"^(\s*///)(?=   \s*[^\s-])", r"\1    ", out[k])
        end = run_end(lines, i, depth)
        if COMPOUND.match(lines[i]) or re.match(r"\s*(public|private|protected):", lines[i]):
            continue
        out[begin] = f"{' ' * depth}/** @{{ */ {out[begin].lstrip()}"
        out[end - 1] = f"{out[end - 1]} /** @}} */" if "//" not in out[end - 1] else out[end - 1]
        if "//" in out[end - 1] and not out[end - 1].endswith("*/"):  # a trailing comment would swallow it
            if end < len(out) and not out[end].strip():
                out[end] = "/** @} */"
            else:
                closed.add(end)
        i = end
    return [f"/** @}} */ {line}" if i in closed else line for i, line in enumerate(out)]
