/* PDF files read back by poppler's programs: newer versions of cairo compress what older ones left readable.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/* What `command` (such as "pdfinfo" or "pdfimages -list") prints about a PDF in memory, with a 0 at its end; to be
 * freed. NULL: poppler's programs are not installed, or the file is none that they can read. */
char *pdf_report(const char *command, const void *data, size_t size_bytes);
