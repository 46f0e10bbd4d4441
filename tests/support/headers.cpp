// The source of the target that precompiles the tests' shared headers.
