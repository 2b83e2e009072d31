/* Text in, text out: what a model puts at the first [MASK] of a text.
 *   cc example_text.c $(pkg-config --cflags --libs deberta) -o example_text
 *   ./example_text models/demo "She looked at [MASK] with a smile."
 * SPDX-License-Identifier: MIT */
#include <deberta.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The token with the largest logit at one position of the encoded batch; -1 with the error filled. */
static int32_t best_token(deberta_session *session, const deberta_model *model, size_t position, deberta_error *error)
{
    const size_t width = deberta_task_width(model, DEBERTA_TASK_MLM);
    float *logits = malloc((width + 1) * sizeof *logits);
    int32_t best = -1;
    if (logits && deberta_task_logits(session, DEBERTA_TASK_MLM, &position, 1, logits, width, error) == DEBERTA_OK) {
        best = 0;
        for (size_t v = 1; v < width; v++)
            if (logits[v] > logits[best]) best = (int32_t)v;
    }
    free(logits);
    return best;
}

static deberta_status fill_mask(const deberta_model *model, deberta_session *session,
                                const deberta_tokenizer *tokenizer, const deberta_tokens *tokens, deberta_error *error)
{
    const size_t starts[] = {0, tokens->count};
    const deberta_batch batch = {
        .struct_size = sizeof batch, .ids = tokens->ids, .sequence_starts = starts, .sequences = 1};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    const deberta_status status = deberta_encode(session, &batch, &outputs, error);
    if (status != DEBERTA_OK) return status;

    const int32_t mask = deberta_tokenizer_special_id(tokenizer, DEBERTA_SPECIAL_MASK);
    for (size_t t = 0; t < tokens->count; t++) {
        if (tokens->ids[t] != mask) continue;
        const int32_t id = best_token(session, model, t, error);
        char *word = NULL;
        if (id < 0) return error->code ? error->code : DEBERTA_E_MEMORY;
        const deberta_status decoded = deberta_detokenize(&word, NULL, tokenizer, &id, 1, error);
        if (decoded == DEBERTA_OK) printf("%s\n", word);
        deberta_free(word);
        return decoded;
    }
    printf("the text has no [MASK]\n");
    return DEBERTA_OK;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "models/demo";
    const char *words = argc > 2 ? argv[2] : "She looked at [MASK] with a smile.";
    const deberta_text text = {.struct_size = sizeof text, .text = words, .text_bytes = strlen(words)};
    deberta_error error = {0};
    deberta_model *model = NULL;
    deberta_session *session = NULL;
    deberta_tokenizer *tokenizer = NULL;
    deberta_tokens *tokens = NULL;

    const int done = deberta_tokenizer_open(&tokenizer, folder, &error) == DEBERTA_OK &&
                     deberta_tokenize(&tokens, tokenizer, &text, &error) == DEBERTA_OK &&
                     deberta_model_open(&model, folder, NULL, &error) == DEBERTA_OK &&
                     deberta_session_create(&session, model, NULL, &error) == DEBERTA_OK &&
                     fill_mask(model, session, tokenizer, tokens, &error) == DEBERTA_OK;
    if (!done) fprintf(stderr, "%s\n", error.message[0] ? error.message : "out of memory");
    if (!done && argc == 1) fprintf(stderr, "usage: %s MODEL [TEXT]\n", argv[0]);

    deberta_session_free(&session);
    deberta_model_free(&model);
    deberta_tokens_free(&tokens);
    deberta_tokenizer_free(&tokenizer);
    return !done;
}
