/* Malformed model folders (bad/) through the public API: each must be refused with a sentence that names what is wrong
 * where, or be read right; never a crash, never something executed. bad/expect.tsv says what must happen, bad/words.tsv
 * what the message must contain (a comma: all of them; a bar: one of them).
 *
 *     bad_models [--folder DIR] [--only TEXT] [--without-zip] [--messages]
 *
 * --without-zip: of a build that reads no zip archives; those that are one must be refused by a sentence that says so.
 *
 * SPDX-License-Identifier: MIT */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/golden/encode_case.h"

/* What a pickle in some of the folders would leave in the current folder if it were executed. */
static const char *const executed_marker = "pickle-was-executed";
static const double same_bar = 6e-6; /* 00-base is like the small cases, whose float32 error is below 2e-6 */

typedef struct verdict {
    bool good;
    char text[640];
} verdict;

static verdict bad(const char *text, const char *detail)
{
    verdict v = {.good = false};
    snprintf(v.text, sizeof v.text, "%s%s", text, detail);
    return v;
}

/* ------------------------------------------------------------------------------------------------------------ words */

static bool has_one_of(const char *message, char *alternatives)
{
    char *rest = NULL;
    for (char *word = strtok_r(alternatives, "|", &rest); word; word = strtok_r(NULL, "|", &rest)) {
        if (strstr(message, word)) return true;
    }
    return false;
}

/* Does the message contain what the line of words.tsv for this folder asks for? */
static bool names_the_fault(const char *folder, const char *name, const char *message)
{
    char path[600], line[256];
    bool good = false;
    snprintf(path, sizeof path, "%s/words.tsv", folder);
    FILE *stream = fopen(path, "r");
    while (stream && fgets(line, sizeof line, stream)) {
        char *tab = strchr(line, '\t'), *rest = NULL;
        if (!tab || (size_t)(tab - line) != strlen(name) || strncmp(line, name, strlen(name)) != 0) continue;
        line[strcspn(line, "\n")] = 0;
        good = true;
        for (char *word = strtok_r(tab + 1, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
            good = good && has_one_of(message, word);
        break;
    }
    if (stream) fclose(stream);
    return good;
}

static verdict expect_refusal(const char *folder, const char *name, deberta_status status, const deberta_error *error)
{
    if (status == DEBERTA_OK) return bad("was accepted", "");
    if (error->code != status) return bad("error.code is not the status; message: ", error->message);
    if (strchr(error->message, '\n')) return bad("the message has several lines: ", error->message);
    if (!names_the_fault(folder, name, error->message))
        return bad("the message does not name the fault: ", error->message);
    verdict v = {.good = true};
    snprintf(v.text, sizeof v.text, "%s", error->message);
    return v;
}

/* ---------------------------------------------------------------------------------------------------------- running */

static deberta_status encode_all(collected *result, const deberta_model *model, const ragged_batch *batch,
                                 deberta_error *err)
{
    encode_request request = {.threads = 1, .observe_hidden = true};
    return encode_and_collect(result, model, batch, &request, err);
}

/* Largest difference of hidden states from those of 00-base; NaN if they cannot be computed. */
static double distance_from_base(const char *folder, const deberta_model *model)
{
    golden_case base;
    ragged_batch batch = {0};
    collected result = {0};
    double worst = NAN;
    if (golden_case_read(&base, folder, "00-base", NULL, NULL, NULL) != DEBERTA_OK) return NAN;
    if (ragged_create(&batch, base.rows, base.columns, base.ids, base.mask, base.types, NULL) == DEBERTA_OK &&
        encode_all(&result, model, &batch, NULL) == DEBERTA_OK) {
        worst = 0;
        size_t h = result.info.hidden_size;
        for (size_t s = 0; s < batch.sequences; s++) {
            const file_tensor *last = tensor_file_find(&base.expected, "hidden_states.%zu", result.info.layers);
            for (size_t t = batch.starts[s]; t < batch.starts[s + 1]; t++) {
                size_t row = s * base.columns + batch.first_column[s] + t - batch.starts[s];
                for (size_t e = 0; e < h && batch.mask[t]; e++) {
                    double error = fabs(result.hidden[(result.info.layers * result.tokens + t) * h + e] -
                                        (last ? last->values[row * h + e] : NAN));
                    if (!(error <= worst)) worst = error;
                }
            }
        }
    }
    collected_free(&result);
    ragged_free(&batch);
    golden_case_free(&base);
    return worst;
}

static verdict expect_same(const char *folder, const deberta_model *model)
{
    double error = distance_from_base(folder, model);
    verdict v = {.good = error <= same_bar};
    snprintf(v.text, sizeof v.text, "error against 00-base %.1e", error);
    return v;
}

/* One row of ids, and of mask, from inputs.json. At most 64 columns. */
static size_t read_inputs(const char *folder, const char *name, double *ids, double *mask)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s/inputs.json", folder, name);
    json_t *root = json_load_file(path, 0, NULL);
    const json_t *id_row = json_array_get(json_object_get(root, "input_ids"), 0);
    const json_t *mask_row = json_array_get(json_object_get(root, "attention_mask"), 0);
    size_t n = json_array_size(id_row);
    for (size_t t = 0; t < n && t < 64; t++) {
        ids[t] = json_number_value(json_array_get(id_row, t));
        mask[t] = json_number_value(json_array_get(mask_row, t));
    }
    json_decref(root);
    return n <= 64 ? n : 0;
}

static deberta_status encode_row(collected *result, const deberta_model *model, size_t n, const double *ids,
                                 const double *mask, deberta_error *err)
{
    ragged_batch batch;
    double types[64] = {0};
    DEBERTA_TRY(ragged_create(&batch, 1, n, ids, mask, types, err));
    deberta_status status = encode_all(result, model, &batch, err);
    ragged_free(&batch);
    return status;
}

static size_t count_finite(const collected *result)
{
    size_t finite = 0, count = result->tokens * result->info.hidden_size;
    for (size_t e = 0; e < count; e++) finite += isfinite(result->hidden[result->info.layers * count + e]) != 0;
    return finite;
}

/* 43: NaN in the row of id 7 and Inf in that of id 9 are refused where they are used. */
static verdict expect_refusal_where_used(const deberta_model *model)
{
    static const char *const expected[3] = {NULL, "is nan, expected -1024 to 1024", "is inf, expected -1024 to 1024"};
    const double rows[3][3] = {{1, 3, 2}, {1, 7, 2}, {1, 9, 2}}, mask[3] = {1, 1, 1};
    for (size_t i = 0; i < 3; i++) {
        collected result = {0};
        deberta_error error = {0};
        const deberta_status status = encode_row(&result, model, 3, rows[i], mask, &error);
        const bool finite = status == DEBERTA_OK && count_finite(&result) == result.tokens * result.info.hidden_size;
        collected_free(&result);
        if (!expected[i] && !finite) return bad("not finite without the ids 7 and 9", error.message);
        if (expected[i] && (status != DEBERTA_E_FORMAT || !strstr(error.message, expected[i])))
            return bad("is not refused where it is used", error.message);
    }
    return (verdict){.good = true, .text = "refused where it is used, finite elsewhere"};
}

static verdict expect_finite(const char *folder, const char *name, const deberta_model *model)
{
    double ids[64], mask[64];
    collected result = {0};
    deberta_error error = {0};
    size_t n = read_inputs(folder, name, ids, mask);
    if (n == 0) return bad("inputs.json cannot be read", "");
    if (encode_row(&result, model, n, ids, mask, &error) != DEBERTA_OK) return bad("does not run: ", error.message);
    bool finite = count_finite(&result) == result.tokens * result.info.hidden_size;
    collected_free(&result);
    return (verdict){.good = finite, .text = "hidden states are finite"};
}

static verdict expect_input_refused(const char *folder, const char *name, const deberta_model *model)
{
    double ids[64], mask[64];
    collected result = {0};
    deberta_error error = {0};
    size_t n = read_inputs(folder, name, ids, mask);
    if (n == 0) return bad("inputs.json cannot be read", "");
    deberta_status status = encode_row(&result, model, n, ids, mask, &error);
    collected_free(&result);
    return expect_refusal(folder, name, status, &error);
}

/* ------------------------------------------------------------------------------------------------------------ cases */

static bool holds_zip(const char *path)
{
    char weights[700], begin[2] = {0};
    snprintf(weights, sizeof weights, "%s/pytorch_model.bin", path);
    FILE *stream = fopen(weights, "rb");
    const bool is_zip = stream && fread(begin, 1, 2, stream) == 2 && memcmp(begin, "PK", 2) == 0;
    if (stream) fclose(stream);
    return is_zip;
}

static verdict expect_no_zip(deberta_status status, const deberta_error *error)
{
    if (status != DEBERTA_E_UNSUPPORTED || !strstr(error->message, "safetensors"))
        return bad("does not say that weights come from safetensors: ", error->message);
    return (verdict){.good = true, .text = "refused: a zip archive"};
}

static verdict run_folder(const char *folder, const char *name, const char *expected, const char *where,
                          bool without_zip)
{
    char path[600];
    deberta_error error = {0};
    deberta_model *model = NULL;
    verdict v;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (access(path, F_OK) != 0) return bad("the folder is missing", ""); /* that, too, would be refused */
    deberta_status status = deberta_model_open(&model, path, NULL, &error);
    bool inputs = strcmp(where, "inputs") == 0;
    if (without_zip && holds_zip(path))
        v = expect_no_zip(status, &error);
    else if (strcmp(expected, "error") == 0 && !inputs)
        v = expect_refusal(folder, name, status, &error);
    else if (strcmp(expected, "either") == 0 && status != DEBERTA_OK)
        v = (verdict){.good = true, .text = "refused"};
    else if (status != DEBERTA_OK)
        v = bad("was refused: ", error.message);
    else if (strcmp(expected, "error") == 0)
        v = expect_input_refused(folder, name, model);
    else if (strcmp(expected, "load") == 0)
        v = inputs ? expect_finite(folder, name, model) : expect_refusal_where_used(model);
    else
        v = expect_same(folder, model);
    if (status != DEBERTA_OK && model) v = bad("a model came back together with an error", "");
    deberta_model_free(&model);
    if (access(executed_marker, F_OK) == 0) v = bad("the pickle was executed", "");
    return v;
}

int main(int argc, char **argv)
{
    const char *root = "tests/golden", *only = NULL;
    char folder[512], path[600], line[512];
    bool messages = false, without_zip = false;
    size_t passed = 0, failed = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--messages") == 0) messages = true;
        if (strcmp(argv[i], "--without-zip") == 0) without_zip = true;
        if (strcmp(argv[i], "--folder") == 0 && i + 1 < argc) root = argv[++i];
        if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) only = argv[++i];
    }
    snprintf(folder, sizeof folder, "%s/bad", root);
    snprintf(path, sizeof path, "%s/expect.tsv", folder);
    unlink(executed_marker);
    FILE *stream = fopen(path, "r");
    if (!stream || !fgets(line, sizeof line, stream)) return fprintf(stderr, "%s cannot be read\n", path), 2;
    while (fgets(line, sizeof line, stream)) {
        char *rest = NULL, *name = strtok_r(line, "\t", &rest), *expected = strtok_r(NULL, "\t", &rest);
        char *where = strtok_r(NULL, "\t", &rest), *description = strtok_r(NULL, "\n", &rest);
        if (!description) {
            printf("FAIL %s: a line with less than four fields, '%s'\n", path, name ? name : "");
            failed++;
            continue;
        }
        if (only && !strstr(name, only)) continue;
        verdict v = run_folder(folder, name, expected, where, without_zip);
        if (!v.good) printf("FAIL %-26s must be '%s' (%s): %s\n", name, expected, description, v.text);
        if (v.good && messages) printf("ok   %-26s %s\n", name, v.text);
        v.good ? passed++ : failed++;
        fflush(stdout); /* a crash must not swallow what came before it */
    }
    fclose(stream);
    printf("%zu passed, %zu failed, 0 skipped\n", passed, failed);
    return failed > 0 || passed == 0; /* having tried nothing is no success */
}
