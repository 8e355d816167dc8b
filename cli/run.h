#pragma once

namespace sgdph::cli {

/// The whole command: reads the command line, does what it says and gives the exit code. No exception leaves it: 2 is
/// a mistake in the input and 1 any other failure, each with one line on standard error.
int run(int argc, char** argv);

}  // namespace sgdph::cli
