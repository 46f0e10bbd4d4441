// The target that compiles the tests' shared headers needs a source; this is it.
