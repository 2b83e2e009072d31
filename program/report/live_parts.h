/* Makes a page that computes: it contains the modules of WebAssembly and the files of the model.
 *
 * The page holds each file deflated (RFC 1950), then base64, in elements of at most 64 kB of the class "module-<tier>"
 * or "file-<number>". A worker of the page unpacks them, takes the fastest module that the browser can run, opens the
 * model and answers with what explorer_text.c writes of a text (wasm/module_text.c): the same heads, the same cells.
 * explorer_live.js is the page's side, live_worker.js the worker's. For one text the page also has the SHA-256 of the
 * hidden states that this program computed; the worker computes it again and the page says whether they are equal.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "program/frame/options.h"

typedef struct live_parts {
    bool wanted;         /* --live */
    bool without_model;  /* --no-model: the reader opens the folder */
    const char *modules; /* --modules, then the folder that has them; NULL: none */
} live_parts;

/* Looks for modules and checks that the model can go into a page. Where there are no modules and none were asked for by
 * name, a note says so. */
void live_parts_find(const common_options *options, live_parts *live);
/* Describes them for the page: modules, files, precision. */
json_t *live_parts_describe(const common_options *options, const live_parts *live);
/* The elements. Those of the model are most of the page, and come last in it: what it shows first needs none of them.
 */
void live_parts_put_modules(const common_options *options, const live_parts *live, FILE *out);
void live_parts_put_model(const common_options *options, const live_parts *live, FILE *out);
