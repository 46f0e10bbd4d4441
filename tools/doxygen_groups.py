"""Prepares headers for Doxygen. In Levin's headers a comment above several declarations without empty lines between
them describes all of them; Doxygen wants such declarations in a group. Line numbers stay the same.

                                                    ->   /** @{ */
    /// Number of elements, and of dimensions.
    int64_t numel() const;
    int dim() const;                                ->   int dim() const; /** @} */

A comment beside a declaration of several variables describes all of them, too:

    double lower, upper;  ///< Bounds.              ->   double lower; /**< Bounds. */ double upper; /**< Bounds. */

Lines of a comment that are indented further, such as formulas and code, keep their form: Markdown wants four spaces
more.

A kernel's table that has no comment gets that of its arguments, which is the contract:

    extern constinit Kernel<void(const SortArgs&, Stream&)> sort, topk;    ->   /** @{ @copydoc SortArgs */ extern ...
"""
import re

COMPOUND = re.compile(r"\s*(template\s*<.*>\s*)?(class|struct|union|enum|namespace)\b(?!.*\)\s*(const)?\s*;)")
TABLE = re.compile(r"extern constinit Kernel<void\(const (\w+)&, Stream&\)>")

VARIABLE = r"[&*]?\w+(?:\{\}| = [-\w.]+)?"
BESIDE_SEVERAL = re.compile(rf"(\s*)((?:const )?[\w:]+(?:<[\w:<> ]*>)?) ((?:{VARIABLE}, )+{VARIABLE});\s*///<(.*)")


def one_each(line):
    """Returns a declaration of several variables with a comment beside it as one declaration for each."""
    match = BESIDE_SEVERAL.fullmatch(line)
    if not match:
        return line
    space, type_name, names, comment = match.groups()
    return space + " ".join(f"{type_name} {name}; /**<{comment} */" for name in names.split(", "))


def indent(line):
    return len(line) - len(line.lstrip())


def is_comment(line):
    return line.lstrip().startswith("//") and not line.lstrip().startswith("///<")


PREFIX = re.compile(r"\s*(template\s*<|requires\b)")
CONSTRUCTOR = re.compile(r"\s*(?:requires.*\) |explicit |constexpr )*(?!requires\b)(\w+)\(")


def declaration(lines, start):
    """Returns the first line behind `start` that is not a template's head."""
    while start + 1 < len(lines) and PREFIX.match(lines[start]) and not CONSTRUCTOR.match(lines[start]):
        start += 1
    return lines[start]


def described_elsewhere(first, line):
    """Tells whether a declaration has another comment than the one above `first`: an override, which has that of the
    base class, a destructor, with_arguments (see nn::Layer), and behind constructors all that is none."""
    if " override" in line and " override" not in first or re.search(r"\s~\w+\(", line) or " with_arguments(" in line:
        return True
    name, other = CONSTRUCTOR.match(first), CONSTRUCTOR.match(line)
    return bool(name) and not (other and other[1] == name[1])


def run_end(lines, start, depth):
    """Returns the line after the declarations that follow a comment: up to an empty line, a comment of the same
    indentation, a declaration that is described elsewhere, or the end of the enclosing block."""
    i = start
    while i < len(lines):
        line = lines[i]
        if i > start and indent(line) <= depth and is_comment(line):
            return i
        if not line.strip() or indent(line) < depth or re.match(r"\s*(#|}\s*// namespace)", line):
            return i
        starts = indent(line) == depth and line.lstrip()[0] not in "}:" and not PREFIX.match(lines[i - 1])
        if i > start and starts and described_elsewhere(declaration(lines, start), declaration(lines, i)):
            return i
        i += 1
    return i


def marked_up(line):
    """Returns a line whose comment is in Doxygen's markup: a period inside of a sentence does not end it, and an
    indented line is code."""
    line = re.sub(r"\b(et al|e\.g)\.( |$)", r"\1.\\ ", line)
    return re.sub(r"^(\s*///?)(?=   \s*[^\s-])", r"\1    ", line)


def grouped(lines):
    """Returns the lines of a header in the form that Doxygen wants, as shown above."""
    lines = [marked_up(one_each(line)) for line in lines]
    out = list(lines)
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
        if not any(line.lstrip().startswith("///") for line in lines[begin:i]):
            for k in range(begin, i):
                out[k] = re.sub(r"^(\s*)//", r"\1///", out[k])
        end = run_end(lines, i, depth)
        if COMPOUND.match(lines[i]) or re.match(r"\s*(public|private|protected):", lines[i]):
            continue
        if "//" in out[begin - 1] or out[begin - 1].startswith("#"):
            out[begin] = re.sub(r"^(/\*\* @} \*/ )?\s*", r"\g<0>/** @{ */ ", out[begin])
        else:
            out[begin - 1] += " /** @{ */"
        out[end - 1] = f"{out[end - 1]} /** @}} */" if "//" not in out[end - 1] else out[end - 1]
        if "//" in out[end - 1] and not out[end - 1].endswith("*/"):  # a trailing comment would swallow it
            if end < len(out) and not out[end].strip():
                out[end] = "/** @} */"
            else:
                out[end] = f"/** @}} */ {out[end]}"
        i = end
    return out
