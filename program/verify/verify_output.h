/* Writes the findings of `verify` as a table, as JSON and as a chart of the error by layer.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "check/verify.h"
#include "output/result.h"
#include "program/frame/options.h"

/* Returns {"schema": "deberta-verify/1", "checks", "failures", "tiers": [...], "results": [...]}; in the other
 * formats tiers that agree in every number share a row. The caller frees it. */
result *verify_result(const verify_report *report, const verify_options *verify);

/* Draws a line for each quantity over the layers: of one model the median, the 99.9th percentile and the worst, of
 * several the second. Fails with DEBERTA_E_ARGUMENT if nothing has a layer. report: verify_report. */
struct figure_style;
deberta_status verify_figure_draw(const void *report, const struct figure_style *style, const char *const *paths,
                                  size_t path_count, deberta_error *err);

/* Compares the engine with a file that holds input_ids [B,N], optionally attention_mask, token_type_ids,
 * position_ids, and some of hidden_states.*, attn.*, logits.* as `encode` writes them. Only real rows are compared.
 * Tensors that cannot be compared are refused; `extras` allows names that the model does not compute. */
void verify_against_file(const common_options *options, const char *path, bool extras, const verify_options *verify,
                         verify_report *report);

/* Prints one line with tabs between: version, processor, instruction set and the parts that its kernels come from,
 * model, its digest, and SHA-256 of ten texts' last hidden states in float32, int16 and int8 and of four steps of
 * training. The first three fields describe the machine, the others are the same everywhere; a synthetic model has no
 * digest and no training: "-". */
void verify_publish(const common_options *options, const char *out);
