// The code of the guides and of the tour (docs/guides, docs/tour): tools/page_snippets.py writes a test case for each page.
#include "support/page.h"

#include <levin/levin.h>

#include <doctest/doctest.h>

#include "pages.inc"
