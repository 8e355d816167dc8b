#pragma once

// What the library exports is marked SGDPH_API, also in its type information; the rest of it is hidden. A static
// library exports nothing (SGDPH_STATIC, which its CMake target defines): a program or module that holds it keeps it to
// itself.
#if defined(__GNUC__) && !defined(SGDPH_STATIC)
#define SGDPH_API __attribute__((visibility("default")))
#else
#define SGDPH_API
#endif

// What an exported class keeps to itself.
#if defined(__GNUC__)
#define SGDPH_LOCAL __attribute__((visibility("hidden")))
#else
#define SGDPH_LOCAL
#endif
