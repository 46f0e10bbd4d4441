// The code of the guides and of the tour: tools/page_snippets.py writes a test case for each of their pages.
#include "support/page.h"

#include <levin/levin.h>

#include <doctest/doctest.h>

#include "pages.inc"
