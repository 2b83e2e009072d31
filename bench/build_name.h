/* Names this build by its version and its commit, followed by "-dirty" if files differed from the commit: "0.1.0
 * (7b1ef9e036de)". Two builds of one version may compute different bits, or write them differently.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

const char *build_name(void);
