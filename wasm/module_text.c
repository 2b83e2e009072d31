/* Runs one text through the open model: tokens, hidden states, the page's numbers of every head, the model's answers.
 *
 * SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "program/report/explorer_answer.h"
#include "program/report/explorer_cells.h"
#include "wasm/module.h"

/* Most bytes of all heads of a text as the module returns them. */
enum { CELLS_BUDGET_BYTES = 29000000 };

/* Reports to JavaScript that `done` of all layers are finished. */
__attribute__((import_module("deberta"), import_name("progress"))) extern void on_progress(size_t done, size_t of);

int EXPORT(tokenize)(const char *text, size_t text_bytes, const char *pair, size_t pair_bytes);
int EXPORT(tokens_describe)(void);
int EXPORT(encode)(const char *ablations);
int EXPORT(explore)(const char *ablations);
int EXPORT(candidates)(size_t top, int decoder);
int EXPORT(answers_describe)(void);
int EXPORT(answers_by_layer)(const char *ablations);
const uint8_t *EXPORT(cells)(void);
size_t EXPORT(cells_bytes)(void);

const uint8_t *cells(void) { return module.cells; }
size_t cells_bytes(void) { return module.cells_bytes; }

/* ---------------------------------------------------------------------------------------------------------- tokens */

int tokenize(const char *text, size_t text_bytes, const char *pair, size_t pair_bytes)
{
    if (!module.tokenizer) DEBERTA_FAIL(&module.error, DEBERTA_E_UNSUPPORTED, "this model has no tokenizer");
    /* a length of 0 means a text that ends with NUL, so both texts end with one that is not counted */
    const deberta_text given = {.struct_size = sizeof given,
                                .text = text,
                                .text_bytes = text_bytes,
                                .pair = pair,
                                .pair_bytes = pair_bytes,
                                .max_tokens = MODULE_MAX_TOKENS};
    if (module.tokens == module.encoded) module.tokens = NULL; /* the answers about that text still need its list */
    return deberta_tokenize(&module.tokens, module.tokenizer, &given, &module.error);
}

static const char *module_name_of(size_t token)
{
    const char *name = deberta_tokens_text(module.tokens, token, NULL);
    return name ? name : "";
}

/* Returns the label in the form of a report's page: without the space mark, and with a point before a piece inside a
 * word. */
static json_t *label_of(size_t token)
{
    static const char mark[] = "\u2581";
    const char *name = module_name_of(token);
    const bool marked = strncmp(name, mark, strlen(mark)) == 0;
    const char *plain = marked ? name + strlen(mark) : name;
    if (module.tokens->roles[token] != DEBERTA_TOKEN_TEXT) return json_string(name);
    if (!*plain) return json_string("\u2423");
    const unsigned char first = (unsigned char)*plain;
    const bool inside = !marked && token > 0 && module.tokens->roles[token - 1] == DEBERTA_TOKEN_TEXT &&
                        strcmp(module_name_of(token - 1), mark) != 0 && (isalnum(first) || first >= 0x80);
    json_t *label = inside ? json_sprintf("\u00b7%s", plain) : json_string(plain);
    return label ? label : json_string("\uFFFD");
}

static bool is_special(size_t token)
{
    const int32_t id = module.tokens->ids[token];
    return module.tokens->roles[token] != DEBERTA_TOKEN_TEXT ||
           id == deberta_tokenizer_special_id(module.tokenizer, DEBERTA_SPECIAL_UNK);
}

static json_t *describe_tokens(void)
{
    const deberta_tokens *list = module.tokens;
    json_t *labels = json_array(), *ids = json_array(), *types = json_array(), *special = json_array();
    for (size_t t = 0; t < list->count; t++) {
        json_array_append_new(labels, label_of(t));
        json_array_append_new(ids, json_integer(list->ids[t]));
        json_array_append_new(types, json_integer(list->token_types[t]));
        json_array_append_new(special, json_integer(is_special(t)));
    }
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "n", (json_int_t)list->count, "dropped",
                     (json_int_t)list->dropped, "tokens", labels, "ids", ids, "types", types, "special", special);
}

static deberta_status check_tokens(void)
{
    if (module.tokens && module.tokens->count) return DEBERTA_OK;
    DEBERTA_FAIL(&module.error, DEBERTA_E_ARGUMENT, "there are no tokens yet");
}

int tokens_describe(void)
{
    DEBERTA_TRY(check_tokens());
    return module_answer(describe_tokens());
}

/* ---------------------------------------------------------------------------------------------------------- encode */

typedef struct exploration {
    cell_layout layout;
    size_t layers, heads, layer; /* layer: the current one */
    float *matrices;             /* [heads][components][n][n] */
    unsigned char *special;
    json_t *about; /* numbers of the finished layers */
    size_t used_bytes;
} exploration;

static float *matrix_of(const exploration *e, size_t head, int component)
{
    return e->matrices + (head * DEBERTA_COMPONENT_COUNT + (size_t)component) * e->layout.n * e->layout.n;
}

/* Packs the heads of a finished layer. */
static deberta_status finish_layer(exploration *e)
{
    json_t *row = json_array();
    json_array_append_new(e->about, row);
    for (size_t head = 0; head < e->heads; head++) {
        float *matrices[DEBERTA_COMPONENT_COUNT];
        for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) matrices[c] = e->layout.has[c] ? matrix_of(e, head, c) : NULL;
        json_t *about = json_object();
        json_array_append_new(row, about);
        explorer_head_pack(&e->layout, matrices, e->special, module.cells + e->used_bytes, about);
        e->used_bytes += cell_layout_bytes(&e->layout);
    }
    on_progress(++e->layer, e->layers);
    return DEBERTA_OK;
}

static deberta_status take_block(void *context, const deberta_attention_block *block)
{
    exploration *e = context;
    if (block->layer != e->layer) DEBERTA_TRY(finish_layer(e));
    float *matrix = matrix_of(e, block->head, (int)block->component);
    for (size_t i = 0; i < block->rows; i++)
        memcpy(matrix + (block->first_query + i) * block->keys, block->values + i * block->stride,
               block->keys * sizeof *matrix);
    return DEBERTA_OK;
}

static deberta_status run_encoder(const char *ablations, const deberta_observer *observer)
{
    DEBERTA_TRY(check_tokens());
    const size_t starts[2] = {0, module.tokens->count};
    DEBERTA_TRY(module_session(ablations));
    module_forget();
    module.outputs = (deberta_outputs){.struct_size = sizeof module.outputs};
    const deberta_batch batch = {.struct_size = sizeof batch,
                                 .ids = module.tokens->ids,
                                 .sequence_starts = starts,
                                 .sequences = 1,
                                 .token_types = module.tokens->token_types,
                                 .observer = observer};
    DEBERTA_TRY(deberta_encode(module.session, &batch, &module.outputs, &module.error));
    DEBERTA_TRY(deberta_session_check_finite(module.session, &module.error)); /* NaN and infinity, as the program */
    module.encoded = module.tokens;
    return DEBERTA_OK;
}

int encode(const char *ablations) { return run_encoder(ablations, NULL); }

/* Computes sizes with overflow checks: they have 32 bits here, and a model decides the numbers of heads and
 * layers. */
static bool measure(const exploration *e, size_t *matrices_bytes)
{
    /* no overflow, with at most MODULE_MAX_TOKENS on a side */
    const size_t matrix_bytes = e->layout.n * e->layout.n * sizeof *e->matrices;
    return size_multiply(e->heads, DEBERTA_COMPONENT_COUNT * matrix_bytes, matrices_bytes) &&
           cell_layout_all_bytes(&e->layout, e->layers, e->heads, &module.cells_bytes);
}

static deberta_status prepare(exploration *e, const deberta_model_info *info)
{
    const size_t n = module.tokens->count;
    size_t all_heads, matrices_bytes;
    e->layers = info->layers, e->heads = info->heads;
    if (!size_multiply(e->layers, e->heads, &all_heads)) all_heads = SIZE_MAX;
    e->layout = cell_layout_choose(n, info->has_c2p, info->has_p2c, all_heads, CELLS_BUDGET_BYTES);
    e->special = calloc(n, 1);
    e->about = json_array();
    free(module.cells);
    module.cells = NULL;
    if (measure(e, &matrices_bytes)) {
        e->matrices = malloc(matrices_bytes);
        module.cells = malloc(module.cells_bytes);
    }
    for (size_t t = 0; e->special && t < n; t++) e->special[t] = is_special(t);
    return e->special && e->about && e->matrices && module.cells
               ? DEBERTA_OK
               : status_fail(&module.error, DEBERTA_E_MEMORY, "out of memory for the heads of %zu tokens", n);
}

/* Runs a text. The answer is the page's description of it (explorer_text.c), cells() all heads one after the
 * other. */
int explore(const char *ablations)
{
    DEBERTA_TRY(check_tokens());
    exploration e = {0};
    const deberta_observer observer = {.struct_size = sizeof observer, .context = &e, .on_attention = take_block};
    deberta_status status = prepare(&e, deberta_model_describe(module.model));
    if (status == DEBERTA_OK) status = run_encoder(ablations, &observer);
    if (status == DEBERTA_OK) status = finish_layer(&e);
    if (status == DEBERTA_OK) {
        json_t *about = describe_tokens();
        json_object_update_new(about,
                               json_pack("{s:I, s:I, s:b, s:[b,b,b], s:O, s:I}", "pool", (json_int_t)e.layout.pool,
                                         "cells", (json_int_t)e.layout.cells, "exact", e.layout.exact, "has", 1,
                                         e.layout.has[DEBERTA_C2P], e.layout.has[DEBERTA_P2C], "heads", e.about,
                                         "head_bytes", (json_int_t)cell_layout_bytes(&e.layout)));
        status = module_answer(about);
    }
    json_decref(e.about);
    free(e.special);
    free(e.matrices);
    return status;
}

/* --------------------------------------------------------------------------------------------------------- answers */

static answered_text module_text_of(const deberta_tokens *tokens)
{
    return (answered_text){.session = module.session,
                           .model = module.model,
                           .tokenizer = module.tokenizer,
                           .ids = tokens->ids,
                           .token_types = tokens->token_types,
                           .tokens = tokens->count};
}

/* Predicts every [MASK] of the text encoded last: its place and the `top` tokens. decoder: 1 for the Enhanced Mask
 * Decoder, as in `fill-mask`. */
int candidates(size_t top, int decoder)
{
    const deberta_task task = decoder ? DEBERTA_TASK_MLM_EMD : DEBERTA_TASK_MLM;
    json_t *list;
    if (!deberta_task_width(module.model, task))
        DEBERTA_FAIL(&module.error, DEBERTA_E_UNSUPPORTED, "this model has no head for [MASK]");
    DEBERTA_TRY(module_check_encoded());
    const answered_text text = module_text_of(module.encoded);
    DEBERTA_TRY(explorer_answer_masks(&text, task, top, &list, &module.error));
    return module_answer(list);
}

/* Writes the answers of all heads for that text (explorer_answer.h). */
int answers_describe(void)
{
    json_t *answer;
    DEBERTA_TRY(module_check_encoded());
    const answered_text text = module_text_of(module.encoded);
    DEBERTA_TRY(explorer_answer(&text, false, &answer, &module.error));
    return module_answer(answer);
}

/* Writes the answers of the last text by layer. It encodes that text with other layers in the place of the last, so no
 * text counts as encoded afterwards. */
int answers_by_layer(const char *ablations)
{
    json_t *answers;
    DEBERTA_TRY(check_tokens());
    DEBERTA_TRY(module_session(ablations));
    module_forget();
    const answered_text text = module_text_of(module.tokens);
    DEBERTA_TRY(explorer_answers_by_layer(&text, &answers, &module.error));
    return module_answer(answers);
}
