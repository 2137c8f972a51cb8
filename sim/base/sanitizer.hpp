// Whether this is a build with the address sanitizer, which takes several times the memory and the time. GCC says so in a
// macro, clang before 20 in a feature.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define RACKCAST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RACKCAST_ASAN 1
#endif
#endif
#ifndef RACKCAST_ASAN
#define RACKCAST_ASAN 0
#endif
