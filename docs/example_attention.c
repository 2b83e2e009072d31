/* What a head looks at, and why: for every token the key with the largest probability, and the terms of its logit.
 *   cc example_attention.c $(pkg-config --cflags --libs deberta) -o example_attention
 *   ./example_attention models/demo 2 0 "a new store opened beside the new mall"
 * SPDX-License-Identifier: MIT */
#include <deberta.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT (DEBERTA_PROBABILITIES + 1) /* a later library may show more components: they are ignored */
#define SEEN 1                           /* no status of the library, so it can only come from us */

typedef struct head_view {
    size_t layer, head, tokens;
    float *values[KEPT]; /* [tokens][tokens], query first */
} head_view;

static int wants(void *context, size_t layer, size_t head, deberta_component component)
{
    const head_view *view = context;
    return layer == view->layer && head == view->head && component <= DEBERTA_PROBABILITIES;
}

/* Some rows of one component; they come in any order, from any thread, one call at a time. */
static deberta_status take_rows(void *context, const deberta_attention_block *block)
{
    const head_view *view = context;
    float *to = view->values[block->component] + block->first_query * view->tokens;
    for (size_t i = 0; i < block->rows; i++)
        memcpy(to + i * view->tokens, block->values + i * block->stride, block->keys * sizeof *to);
    return DEBERTA_OK;
}

/* Behind the layer that is asked for nothing more needs to be computed. */
static deberta_status stop_behind(void *context, const deberta_hidden_block *block)
{
    const head_view *view = context;
    return block->layer == view->layer + 1 ? SEEN : DEBERTA_OK;
}

static deberta_status look(const deberta_model *model, const deberta_tokens *tokens, head_view *view,
                           deberta_error *error)
{
    const deberta_session_options options = {.struct_size = sizeof options,
                                             .max_tokens = tokens->count,
                                             .features = DEBERTA_OBSERVE_ATTENTION | DEBERTA_OBSERVE_HIDDEN};
    const deberta_observer observer = {.struct_size = sizeof observer,
                                       .context = view,
                                       .on_hidden = stop_behind,
                                       .wants_attention = wants,
                                       .on_attention = take_rows};
    const size_t starts[] = {0, tokens->count};
    const deberta_batch batch = {.struct_size = sizeof batch,
                                 .ids = tokens->ids,
                                 .sequence_starts = starts,
                                 .sequences = 1,
                                 .observer = &observer};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    deberta_session *session = NULL;
    deberta_status status = deberta_session_create(&session, model, &options, error);
    if (status == DEBERTA_OK) status = deberta_encode(session, &batch, &outputs, error);
    deberta_session_free(&session);
    return status == SEEN ? DEBERTA_OK : status;
}

/* Fills up to 12 characters: a token may have some of several bytes, such as "\xe2\x96\x81" before a word. */
static void print_token(const char *token)
{
    int width = 0;
    for (const char *at = token; *at; at++) width += (*at & 0xc0) != 0x80;
    printf("%s%*s ", token, width < 12 ? 12 - width : 0, "");
}

static void print(const head_view *view, const deberta_tokens *tokens)
{
    const size_t n = view->tokens;
    printf("%-12s %-12s %6s", "token", "looks at", deberta_component_name(DEBERTA_PROBABILITIES));
    for (int c = DEBERTA_C2C; c <= DEBERTA_LOGITS; c++) printf(" %7s", deberta_component_name((deberta_component)c));
    for (size_t i = 0; i < n; i++) {
        const float *row = view->values[DEBERTA_PROBABILITIES] + i * n;
        size_t best = 0;
        for (size_t j = 1; j < n; j++)
            if (row[j] > row[best]) best = j;
        printf("\n");
        print_token(deberta_tokens_text(tokens, i, NULL));
        print_token(deberta_tokens_text(tokens, best, NULL));
        printf("%6.3f", row[best]);
        for (int c = DEBERTA_C2C; c <= DEBERTA_LOGITS; c++) printf(" %+7.3f", view->values[c][i * n + best]);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "models/demo";
    head_view view = {.layer = argc > 2 ? strtoul(argv[2], NULL, 10) : 2,
                      .head = argc > 3 ? strtoul(argv[3], NULL, 10) : 0};
    const deberta_text text = {.struct_size = sizeof text,
                               .text = argc > 4 ? argv[4] : "a new store opened beside the new mall"};
    deberta_error error = {0};
    deberta_model *model = NULL;
    deberta_tokenizer *tokenizer = NULL;
    deberta_tokens *tokens = NULL;

    int done = deberta_tokenizer_open(&tokenizer, folder, &error) == DEBERTA_OK &&
               deberta_tokenize(&tokens, tokenizer, &text, &error) == DEBERTA_OK &&
               deberta_model_open(&model, folder, NULL, &error) == DEBERTA_OK;
    if (done) {
        const deberta_model_info *info = deberta_model_describe(model);
        done = view.layer < info->layers && view.head < info->heads;
        if (!done) fprintf(stderr, "the model has %zu layers of %zu heads\n", info->layers, info->heads);
    }
    if (done) view.tokens = tokens->count;
    for (size_t c = 0; done && c < KEPT; c++)
        done =
            (view.values[c] = calloc(view.tokens * view.tokens, sizeof(float))) != NULL; /* 0 where there is no term */
    if (done) done = look(model, tokens, &view, &error) == DEBERTA_OK;
    if (done) print(&view, tokens);
    if (!done && error.message[0]) fprintf(stderr, "%s\n", error.message);
    if (!done && argc == 1) fprintf(stderr, "usage: %s MODEL [LAYER [HEAD [TEXT]]]\n", argv[0]);

    for (size_t c = 0; c < KEPT; c++) free(view.values[c]);
    deberta_model_free(&model);
    deberta_tokens_free(&tokens);
    deberta_tokenizer_free(&tokenizer);
    return !done;
}
