/* The library in 30 lines:  cc example.c $(pkg-config --cflags --libs deberta) -o example && ./example MODEL
 * SPDX-License-Identifier: MIT */
#include <deberta.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "synthetic:v3-xsmall,vocab=1000";
    deberta_error error;
    deberta_model *model = NULL;
    deberta_session *session = NULL;
    if (deberta_model_open(&model, path, NULL, &error) != DEBERTA_OK ||
        deberta_session_create(&session, model, NULL, &error) != DEBERTA_OK) {
        fprintf(stderr, "%s\n", error.message);
        deberta_model_free(&model);
        return 1;
    }
    /* two sequences, one after the other, no padding */
    const int32_t ids[] = {1, 7, 3, 11, 2, 1, 5, 2};
    const size_t starts[] = {0, 5, 8};
    const deberta_batch batch = {.struct_size = sizeof batch, .ids = ids, .sequence_starts = starts, .sequences = 2};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    const deberta_status status = deberta_encode(session, &batch, &outputs, &error);
    if (status != DEBERTA_OK)
        fprintf(stderr, "%s\n", error.message);
    else
        for (size_t t = 0; t < starts[2]; t++)
            printf("token %zu: %9.6f ...\n", t, outputs.hidden[t * outputs.hidden_stride]);
    deberta_session_free(&session);
    deberta_model_free(&model);
    return status != DEBERTA_OK;
}
