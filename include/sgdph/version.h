#pragma once

// The one place the version is written; CMake reads it from here.
#define SGDPH_VERSION_MAJOR 0
#define SGDPH_VERSION_MINOR 1
#define SGDPH_VERSION_PATCH 0
