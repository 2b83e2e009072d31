/* Which build this is: the version, and the commit that the build saw, with "-dirty" behind it where files differed:
 * "0.1.0 (7b1ef9e036de)". Two builds of one version may compute other bits, or write them otherwise.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

const char *build_name(void);
