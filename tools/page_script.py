"""Turns a page into a shell script: page_script.py PAGE [PATTERN], of the sections whose titles match the pattern.

Blocks marked `sh` become commands, and blocks marked with a language and a path, such as `cpp ~/app/main.cpp`, the file
of that path. Each section (##) runs in a subshell of its own that begins in the current folder and stops at the first
command that fails. A block without a language that follows "It prints" is the output that the page promises of the
program ~/app/main.cpp: the script ends with an error if a command that is one of PROGRAMS prints something else."""

import pathlib
import re
import sys

PROGRAMS = r"~/(app/(build|static|packaged)/app|app/by_pkg_config|fetched/build/app)"


def blocks_of(page):
    """Yields (section, what stands after the fence, text, the line before the fence)."""
    section, fence, lines, before = "", None, [], ""
    for line in page.splitlines():
        if fence is not None:
            if line == "```":
                yield section, fence, "\n".join(lines), before
                fence, lines = None, []
            else:
                lines.append(line)
        elif line.startswith("```"):
            fence = line[3:].strip()
        else:
            if line.startswith("## "):
                section = line[3:]
            if line.strip():
                before = line


def main():
    page = pathlib.Path(sys.argv[1]).read_text()
    pattern = sys.argv[2] if len(sys.argv) > 2 else ""
    script, section_open, current = ["set -euo pipefail", "start=$PWD"], False, None
    promised = ""
    for section, fence, text, before in blocks_of(page):
        if section != current and section_open:
            script.append(")")
            section_open = False
        if fence == "" and "It prints" in before:
            promised = text
            continue
        language, _, path = fence.partition(" ")
        if (language != "sh" and not path) or not re.search(pattern, section):
            continue
        if not section_open:
            script += ["(", 'cd "$start"', f"echo '### {section}'"]
            section_open, current = True, section
        if path:
            path = path.replace("~", "$HOME", 1)
            script += [f'mkdir -p "$(dirname "{path}")"', f'cat >"{path}" <<\'END_OF_FILE\'', text, "END_OF_FILE"]
            continue
        for command in re.sub(r"\\\n\s*", "", text).split("\n"):
            script.append(f"echo {quoted('$ ' + command)}")
            if promised and re.fullmatch(PROGRAMS, command):
                script += [f"printed=$({command})", 'echo "$printed"', f"[ \"$printed\" = {quoted(promised)} ] || "
                           "{ echo 'the page promises another output'; exit 1; }"]
            else:
                script.append(command)
    if section_open:
        script.append(")")
    print("\n".join(script))


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


if __name__ == "__main__":
    main()
