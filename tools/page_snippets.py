#!/usr/bin/env python3
"""Turns the C++ of pages into test cases: tools/page_snippets.py OUT PAGE... writes one test case a page.
tools/page_snippets.py --kernels OUT PAGE... writes the pages' CUDA kernels alone, each in its page's namespace.

The ```cpp blocks of a page are one program, in their order. A block that begins with a declaration (#include, using,
struct, class, template, enum, or a function's head) stands at namespace scope; the others are statements, and share one
function. A block with `int main()` is a program of its own. A ```text block is what was printed since the last one;
`...` in it stands for anything. Errors of the compiler name the page and its line.
"""
import pathlib
import re
import sys

DECLARATION = re.compile(r"(#include|using |struct |class |template|enum |namespace |constexpr |"
                         r"[\w:<>,&* ]+ [\w:]+\([^;]*\)( const)? \{$)")


def blocks(page):
    """Yields (language, number of the first line, lines) of the fenced blocks of a page."""
    language, start, block = None, 0, []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            if language is None:
                language, start, block = line[3:].split(" ")[0], number + 1, []
            else:
                yield language, start, block
                language = None
        elif language is not None:
            block.append(line)


def quoted(text):
    return f'R"page({text})page"'


def test_case(page, name, includes):
    """Returns the C++ of one page; adds its include lines to `includes`."""
    scope, body, mains = [], [], 0
    for language, start, block in blocks(page):
        place = f'#line {start} "{page}"'
        if language == "text":
            body.append(f"  page.expect({quoted(chr(10).join(block))}, {start});")
        if language != "cpp":
            continue
        own = [line if not line.startswith("#include") else "" for line in block]
        includes.update(line for line in block if line.startswith("#include"))
        first = next((line for line in block if line.strip() and not line.lstrip().startswith("//")), "")
        first = re.sub(r"\s*//.*$", "", first)
        code = "\n".join(own)
        if re.search(r"^int main\(\) \{", code, re.MULTILINE):
            mains += 1
            scope += [place, code.replace("int main() {", f"int main_{mains}() {{")]
            body.append(f"  page.check_status(main_{mains}(), {start});")
        elif DECLARATION.match(first):
            scope += [place, code]
        else:
            body += [place, code]
    scope = [re.sub(r"^using namespace levin;$", "", part, flags=re.MULTILINE) for part in scope]
    return "\n".join([f"namespace {name} {{", "using namespace levin;", *scope, "", f"void run(levin::test::Page& page) {{",
                      "  static_cast<void>(page);", *body, "}", f"}}  // namespace {name}",
                      f'TEST_CASE("the code of {page.parent.name}/{page.name} compiles, runs and prints what the page says") {{',
                      f'  levin::test::Page page("{page.parent.name}/{page.name}");', f"  {name}::run(page);", "  page.close();", "}", ""])


def kernels(page):
    """Returns the functions of a page that are marked __global__."""
    out = []
    for language, start, block in blocks(page):
        names = [line.split()[1] for line in block if line.startswith("namespace ")]
        for at, line in enumerate(block):
            if language != "cpp" or not line.startswith("__global__"):
                continue
            first = at - 1 if block[at - 1].startswith("template") else at
            code = block[first:block.index("}", at) + 1]
            out += [f"namespace {names[0]} {{", f'#line {start + first} "{page}"', *code, "}"]
    return "\n".join([*out, ""])


def write(out, text):
    if not out.is_file() or out.read_text() != text:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text)


def main():
    if sys.argv[1] == "--kernels":
        write(pathlib.Path(sys.argv[2]), "".join(kernels(pathlib.Path(page)) for page in sys.argv[3:]))
        return
    out, includes, cases = pathlib.Path(sys.argv[1]), set(), []
    for path in sys.argv[2:]:
        page = pathlib.Path(path)
        cases.append(test_case(page, "page_" + re.sub(r"\W", "_", f"{page.parent.name}_{page.stem}"), includes))
    write(out, "\n".join([*sorted(includes), "", *cases]))


if __name__ == "__main__":
    main()
