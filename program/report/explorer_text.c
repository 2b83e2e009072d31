/* Reads the attention of one text from a file of `encode`, and packs it for the page, head by head.
 *
 * SPDX-License-Identifier: MIT */
#include "program/report/explorer_parts.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/attention_habits.h"
#include "analysis/capture.h"
#include "core/base/sha256.h"
#include "core/io/mapped_file.h"
#include "core/io/safetensors.h"
#include "output/byte_buffer.h"
#include "output/json_text.h"
#include "program/attention/token_view.h"
#include "program/report/explorer_cells.h"

/* The open file that holds a text's data. */
typedef struct text_data {
    const common_options *options;
    mapped_file file;
    tensor_list tensors;
    size_t layers, heads, n, area; /* area: n n */
    char digest[65];               /* SHA-256 of the hidden states */
    cell_layout layout;
    float *matrices[DEBERTA_COMPONENT_COUNT]; /* matrices of the current head */
    uint8_t *bytes;
    unsigned char *special; /* [n] not 0 for tokens such as [CLS] and [SEP] */
} text_data;

static const stored_tensor *find(const text_data *data, size_t layer, int component)
{
    char name[48];
    snprintf(name, sizeof name, "attn.%zu.%s", layer, deberta_component_name((deberta_component)component));
    for (size_t k = 0; k < data->tensors.count; k++)
        if (strcmp(data->tensors.items[k].tensor.name, name) == 0) return &data->tensors.items[k];
    return NULL;
}

/* Digests the hidden states row by row, as the page computes it again. The digest is empty if the file has none. */
static void digest_hidden(text_data *data)
{
    for (size_t k = 0; k < data->tensors.count; k++) {
        const tensor *about = &data->tensors.items[k].tensor;
        if (strncmp(about->name, "hidden_states.", strlen("hidden_states.")) != 0) continue;
        sha256 hash;
        sha256_begin(&hash, 0);
        sha256_add(&hash, data->file.bytes + data->tensors.items[k].offset_bytes, about->elements * sizeof(float));
        sha256_finish(&hash, data->digest);
    }
}

static void open_data(text_data *data, const char *path, size_t tokens, size_t budget_bytes)
{
    deberta_error error;
    must(data->options, mapped_file_open(&data->file, path, &error), &error);
    must(data->options, safetensors_list(&data->tensors, data->file.bytes, data->file.size_bytes, path, &error),
         &error);
    const stored_tensor *first = find(data, 0, DEBERTA_PROBABILITIES);
    if (!first || first->tensor.rank != 4 || first->tensor.shape[2] != tokens)
        end_with(data->options, EXIT_INPUT, "%s: expected attn.0.probs of %zu tokens", path, tokens);
    data->heads = first->tensor.shape[1];
    data->n = tokens;
    while (find(data, data->layers, DEBERTA_PROBABILITIES)) data->layers++;
    size_t all_heads;
    if (!size_multiply(tokens, tokens, &data->area) || !size_multiply(data->layers, data->heads, &all_heads))
        end_with(data->options, EXIT_INPUT, "%s: %zu layers of %zu heads for %zu tokens are beyond all sizes", path,
                 data->layers, data->heads, tokens);
    data->layout =
        cell_layout_choose(tokens, find(data, 0, DEBERTA_C2P), find(data, 0, DEBERTA_P2C), all_heads, budget_bytes);
    digest_hidden(data);
    data->bytes = memory_take(cell_layout_bytes(&data->layout), 1);
    data->special = memory_take(tokens, 1);
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
        if (data->layout.has[c]) data->matrices[c] = memory_take(data->area, sizeof(float));
}

static void close_data(text_data *data)
{
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) free(data->matrices[c]);
    free(data->bytes);
    free(data->special);
    tensor_list_free(&data->tensors);
    mapped_file_close(&data->file);
}

static void read_component(text_data *data, size_t layer, size_t head, int c)
{
    const size_t area = data->area;
    const stored_tensor *tensor = find(data, layer, c);
    size_t elements;
    deberta_error error;
    if (!tensor || !size_multiply(data->heads, area, &elements) || tensor->tensor.elements != elements)
        end_with(data->options, EXIT_INPUT, "%s: attn.%zu.%s is missing or of another shape", data->file.name.text,
                 layer, deberta_component_name((deberta_component)c));
    tensor_convert_f32(data->matrices[c], tensor, data->file.bytes, head * area, area);
    must(data->options, mapped_file_intact(&data->file, &error), &error);
}

static void put_head(text_data *data, size_t text, size_t layer, size_t head, FILE *out, json_t *about)
{
    byte_buffer encoded = {0};
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
        if (data->layout.has[c]) read_component(data, layer, head, c);
    explorer_head_pack(&data->layout, data->matrices, data->special, data->bytes, about);
    byte_buffer_base64(&encoded, data->bytes, cell_layout_bytes(&data->layout));
    fprintf(out, "<script type=\"text/plain\" id=\"cells-%zu-%zu-%zu\">", text, layer, head);
    fwrite(encoded.data, 1, encoded.size_bytes, out);
    fputs("</script>\n", out);
    byte_buffer_free(&encoded);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Returns the tokenized texts, for a second computation: [text] or [text, second segment]; null for ids. */
static json_t *words_of(const explorer_text *text)
{
    const input_batch *input = text->input;
    if (!input->texts) return json_null();
    json_t *words = json_array(), *first = json_clean_string(input->texts[text->row], input->text_bytes[text->row]);
    json_array_append_new(words, first);
    if (input->pairs && input->pairs[text->row]) json_array_append_new(words, json_clean_text(input->pairs[text->row]));
    return words;
}

/* Returns the text as it was given, or a title in its place. */
static json_t *title_of(const explorer_text *text, size_t first, size_t tokens)
{
    if (text->input->texts) {
        const char *pair = text->input->pairs ? text->input->pairs[text->row] : NULL;
        return json_sprintf("%s%s%s", text->input->texts[text->row], pair ? " | " : "", pair ? pair : "");
    }
    return json_sprintf("%zu ids, from %d", tokens, text->input->ids[first]);
}

static json_t *describe_text(const explorer_text *text, const text_data *data, const token_view *view, json_t *heads)
{
    const input_batch *input = text->input;
    const size_t first = view->first_token;
    json_t *tokens = json_array(), *special = json_array(), *types = json_array(), *ids = json_array();
    for (size_t t = first; t < first + data->n; t++) {
        json_t *label = json_string(view->labels[t - first].text);
        json_array_append_new(tokens, label ? label : json_string("\uFFFD"));
        json_array_append_new(ids, json_integer(input->ids[t]));
        json_array_append_new(special, json_integer(view->labels[t - first].special));
        json_array_append_new(types, json_integer(input->token_types ? input->token_types[t] : 0));
    }
    json_t *title = title_of(text, first, data->n);
    return json_pack("{s:o, s:I, s:I, s:I, s:b, s:[b,b,b], s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:s}", "title",
                     title ? title : json_string("?"), "n", (json_int_t)data->n, "pool", (json_int_t)data->layout.pool,
                     "cells", (json_int_t)data->layout.cells, "exact", data->layout.exact, "has", 1,
                     data->layout.has[DEBERTA_C2P], data->layout.has[DEBERTA_P2C], "tokens", tokens, "ids", ids,
                     "special", special, "types", types, "data", base_name(text->data), "heads", heads, "words",
                     words_of(text), "sha256", data->digest);
}

/* Opens the data, and finds the special tokens. */
static void open_text(text_data *data, token_view *view, const explorer_text *text, size_t budget_bytes)
{
    deberta_error error;
    const token_view_choice everything = {.end = SIZE_MAX};
    open_data(data, text->data, text->input->row[text->row].tokens, budget_bytes);
    must(data->options, token_view_make(view, text->input, text->row, &everything, &error), &error);
    for (size_t t = 0; t < data->n; t++) data->special[t] = view->labels[t].special;
}

void explorer_text_telling_head(const common_options *options, const explorer_text *text, size_t *layer, size_t *head)
{
    text_data data = {.options = options};
    token_view view = {0};
    double most = -1;
    *layer = *head = 0;
    open_text(&data, &view, text, SIZE_MAX);
    for (size_t k = 0; k < data.layers * data.heads; k++) {
        read_component(&data, k / data.heads, k % data.heads, DEBERTA_PROBABILITIES);
        const double word = attention_habits_measure(data.matrices[DEBERTA_PROBABILITIES], data.n, data.special).word;
        if (!(word > most)) continue;
        most = word;
        *layer = k / data.heads;
        *head = k % data.heads;
    }
    token_view_free(&view);
    close_data(&data);
}

json_t *explorer_text_put(const common_options *options, const explorer_text *text, size_t index, size_t budget_bytes,
                          FILE *out)
{
    text_data data = {.options = options};
    token_view view = {0};
    json_t *heads = json_array();
    open_text(&data, &view, text, budget_bytes);
    for (size_t l = 0; l < data.layers; l++) {
        json_t *layer = json_array();
        for (size_t head = 0; head < data.heads; head++) {
            json_t *head_about = json_object();
            json_array_append_new(layer, head_about);
            put_head(&data, index, l, head, out, head_about);
        }
        json_array_append_new(heads, layer);
    }
    json_t *about = describe_text(text, &data, &view, heads);
    if (!about) memory_short();
    token_view_free(&view);
    close_data(&data);
    return about;
}
