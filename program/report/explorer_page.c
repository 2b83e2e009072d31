/* Builds the page from its sources and from the JSON of the commands.
 *
 * SPDX-License-Identifier: MIT */
#include "program/report/explorer_parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/sha256.h"
#include "core/base/status.h"
#include "output/byte_buffer.h"
#include "output/json_text.h"
#include "output/scope.h"
#include "program/frame/open_model.h"
#include "program/frame/text_output.h"
#include "viz/palette.h"

/* Generated from the files of the page, see program/report/meson.build. */
extern const unsigned char explorer_html[], explorer_css[], explorer_js[], live_worker[], live_licences[];
extern const size_t explorer_html_bytes, explorer_css_bytes, explorer_js_bytes, live_worker_bytes;

/* Most bytes of attention for all texts before base64, which makes four bytes of three: the page stays below 40
 * MB. */
enum { CELLS_BUDGET_BYTES = 29000000 };

typedef struct page_writer {
    const common_options *options;
    FILE *out;
    const explorer_contents *contents;
} page_writer;

const char *explorer_document_name(explorer_document document)
{
    static const char *const names[DOCUMENT_COUNT] = {"info",    "verify", "receptive-field",
                                                      "lengths", "layers", "training"};
    return names[document];
}

static void put_escaped(FILE *out, const char *text)
{
    for (; text && *text; text++) switch (*text) {
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '&': fputs("&amp;", out); break;
        case '"': fputs("&quot;", out); break;
        default: fputc(*text, out);
        }
}

/* Writes JSON into a script element, where only `<` can end the element or begin a comment, so it is escaped. */
static int put_json_bytes(const char *bytes, size_t count, void *out)
{
    for (size_t k = 0; k < count; k++)
        if (bytes[k] == '<')
            fputs("\\u003c", out);
        else
            fputc(bytes[k], out);
    return 0;
}

/* Writes a value into the page, or ends the program: a page without its data shows nothing. */
static void put_json(page_writer *page, const char *name, const json_t *value)
{
    fprintf(page->out, "<script type=\"application/json\" id=\"json-%s\">", name);
    if (json_dump_callback(value, put_json_bytes, page->out, JSON_COMPACT | JSON_REAL_PRECISION(9)) != 0 &&
        !ferror(page->out))
        memory_short();
    fputs("</script>\n", page->out);
}

/* ---------------------------------------------------------------------------------------------------------- the data */

/* Describes the palettes of the figures: base64 of red, green, blue for every level. */
static json_t *describe_palettes(void)
{
    static const char *const names[] = {"polar", "blues", "greys", "cividis", "viridis", "magma"};
    json_t *object = json_object();
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        draw_colour table[PALETTE_LEVELS_MAX];
        byte_buffer text = {0};
        const palette *map = palette_find(names[k]);
        const size_t levels = palette_table(map, table);
        unsigned char rgb[3 * PALETTE_LEVELS_MAX];
        for (size_t l = 0; l < levels; l++) memcpy(rgb + 3 * l, (uint8_t[]){table[l].r, table[l].g, table[l].b}, 3);
        byte_buffer_base64(&text, rgb, 3 * levels);
        json_object_set_new(object, names[k],
                            json_pack("{s:b, s:s#}", "diverging", palette_is_diverging(map), "rgb",
                                      (const char *)text.data, text.size_bytes));
        byte_buffer_free(&text);
    }
    return object;
}

static json_t *describe_series(void)
{
    json_t *list = json_array();
    for (size_t k = 0; k < PALETTE_SERIES_COUNT; k++) {
        const draw_colour c = palette_series(k);
        json_array_append_new(list, json_sprintf("#%02x%02x%02x", c.r, c.g, c.b));
    }
    return list;
}

static void add_file(const page_writer *page, json_t *list, const char *name, const char *what)
{
    struct stat about;
    const char *path = options_text(page->options, "%s/%s", page->contents->folder, name);
    if (stat(path, &about) == 0 && S_ISREG(about.st_mode))
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:I}", "name", name, "what", what, "bytes", (json_int_t)about.st_size));
}

/* Describes the file of encode, which stores numbers of every precision as float32. */
static const char *describe_tensors(const page_writer *page)
{
    const char *precision = low_precision_name(page->options);
    return precision ? options_text(page->options,
                                    "components and probabilities of %s linear layers, stored as float32", precision)
                     : "exact components and probabilities, float32";
}

static json_t *describe_files(const page_writer *page)
{
    static const struct {
        explorer_document document;
        const char *name, *what;
    } files[] = {
        {DOCUMENT_INFO, "info.json", "the machine and the model"},
        {DOCUMENT_VERIFY, "verify.json", "verification"},
        {DOCUMENT_RECEPTIVE_FIELD, "receptive-field.json", "receptive field"},
        {DOCUMENT_RECEPTIVE_FIELD, "receptive-field.png", "receptive field, drawn"},
        {DOCUMENT_LENGTHS, "lengths.json", "latency against length, raw samples"},
        {DOCUMENT_LENGTHS, "lengths.png", "latency against length, drawn"},
        {DOCUMENT_LAYERS, "layers.json", "latency against layers, raw samples"},
        {DOCUMENT_LAYERS, "layers.png", "latency against layers, drawn"},
        {DOCUMENT_TRAINING, "training.png", "training: loss, rate and norm of the gradients, drawn"},
    };
    const explorer_contents *contents = page->contents;
    json_t *list = json_array();
    if (contents->is_alone) return list;
    for (size_t k = 0; k < contents->text_count; k++) {
        const explorer_text *text = &contents->texts[k];
        const size_t folder = strlen(contents->folder) + 1;
        add_file(page, list, text->data + folder, describe_tensors(page));
        add_file(page, list, text->figure + folder, "figure");
        add_file(page, list, text->document + folder, "figure for print");
        if (text->attribution_head) add_file(page, list, text->attribution + folder, "attributions of the answer");
    }
    for (size_t k = 0; k < sizeof files / sizeof *files; k++)
        if (contents->has_document[files[k].document]) add_file(page, list, files[k].name, files[k].what);
    add_file(page, list, "commands.sh", "every command that made this folder");
    return list;
}

static json_t *describe_step(const explorer_step *step)
{
    return json_pack("{s:s, s:o, s:b}", "title", step->title, "command", json_clean_text(step->command), "failed",
                     step->failed);
}

static json_t *describe_steps(const explorer_contents *contents)
{
    json_t *list = json_array();
    for (size_t k = 0; k < contents->step_count; k++) json_array_append_new(list, describe_step(&contents->steps[k]));
    return list;
}

/* Puts the JSON of other commands into the page unchanged; the page knows their contracts. */
static void put_documents(page_writer *page)
{
    for (int k = 0; k < DOCUMENT_COUNT; k++) {
        if (!page->contents->has_document[k]) continue;
        const char *document = explorer_document_name((explorer_document)k);
        json_t *value =
            json_load_file(options_text(page->options, "%s/%s.json", page->contents->folder, document), 0, NULL);
        if (value) put_json(page, document, value);
        json_decref(value);
    }
}

/* Puts the attributions of a text as json-attribution-<text>, or says in `about` why there are none. */
static void put_attribution(page_writer *page, size_t index, json_t *about)
{
    const explorer_text *text = &page->contents->texts[index];
    json_t *value = text->attribution_head ? json_load_file(text->attribution, 0, NULL) : NULL;
    if (value) put_json(page, options_text(page->options, "attribution-%zu", index), value);
    if (text->no_attribution) json_object_set_new(about, "no_attribution", json_string(text->no_attribution));
    json_decref(value);
}

static void put_data(page_writer *page)
{
    const explorer_contents *contents = page->contents;
    json_t *texts = json_array();
    for (size_t k = 0; k < contents->text_count; k++) {
        json_t *about = explorer_text_put(page->options, &contents->texts[k], k,
                                          CELLS_BUDGET_BYTES / contents->text_count, page->out);
        if (contents->is_alone) json_object_set_new(about, "data", json_null());
        if (contents->texts[k].answers) json_object_set_new(about, "answers", contents->texts[k].answers);
        put_attribution(page, k, about);
        json_array_append_new(texts, about);
    }
    put_documents(page);
    const live_parts *live = &contents->live;
    if (live->modules) live_parts_put_modules(page->options, live, page->out);
    json_t *about =
        json_pack("{s:o, s:o, s:s, s:{s:s, s:s}, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:s?, s:s?, s:o?}", "model",
                  json_clean_text(contents->model), "command", json_clean_text(contents->command), "version",
                  deberta_version(), "printed", "layers", contents->printed_layers, "heads", contents->printed_heads,
                  "palettes", describe_palettes(), "series", describe_series(), "texts", texts, "files",
                  describe_files(page), "steps", describe_steps(contents), "alone", contents->is_alone, "figures",
                  HAVE_VIZ, "ablated", page->options->ablated.text, "no_labels", contents->no_labels, "live",
                  live->modules ? live_parts_describe(page->options, live) : NULL);
    put_json(page, "page", about);
    json_decref(about);
}

/* ------------------------------------------------------------------------------------------------------ the template */

/* Writes the model and its short name: the last part of a folder's path; the name of a synthetic model is no path. */
static void put_model(page_writer *page)
{
    const char *model = page->contents->model;
    size_t end = strlen(model), first;
    while (end > 1 && model[end - 1] == '/') end--;
    for (first = end; first > 0 && model[first - 1] != '/';) first--;
    char *name = strndup(model + first, end - first);
    put_escaped(page->out, name && strspn(name, ".") < strlen(name) ? name : model);
    free(name);
}

static void put_style(page_writer *page) { fwrite(explorer_css, 1, explorer_css_bytes, page->out); }

/* A block, which keeps the script's names out of `window`. */
static const char script_begin[] = "'use strict';\n{\n", script_end[] = "}\n";

/* Writes the content policy: only the script with this digest runs, and nothing is fetched, whatever a text
 * contains. */
static void put_policy(page_writer *page)
{
    unsigned char digest[32];
    char hex[65];
    sha256 hash;
    byte_buffer text = {0};
    sha256_begin(&hash, 0);
    sha256_add(&hash, script_begin, strlen(script_begin));
    sha256_add(&hash, explorer_js, explorer_js_bytes);
    sha256_add(&hash, script_end, strlen(script_end));
    sha256_finish(&hash, hex);
    for (size_t k = 0; k < sizeof digest; k++) sscanf(hex + 2 * k, "%2hhx", &digest[k]);
    byte_buffer_base64(&text, digest, sizeof digest);
    fprintf(page->out,
            "default-src 'none'; script-src 'sha256-%.*s' 'wasm-unsafe-eval' blob:; worker-src blob:; "
            "style-src 'unsafe-inline'; img-src 'self' file: data: blob:; base-uri 'none'; form-action 'none'",
            (int)text.size_bytes, (const char *)text.data);
    byte_buffer_free(&text);
}

static void put_script(page_writer *page)
{
    fputs(script_begin, page->out);
    fwrite(explorer_js, 1, explorer_js_bytes, page->out);
    fputs(script_end, page->out);
}

static void put_weights(page_writer *page)
{
    if (page->contents->live.modules) live_parts_put_model(page->options, &page->contents->live, page->out);
}

/* Writes the worker's source as text, from which the page makes a worker. */
static void put_worker(page_writer *page)
{
    if (page->contents->live.modules) fwrite(live_worker, 1, live_worker_bytes, page->out);
}

static void put_licences(page_writer *page)
{
    if (page->contents->live.modules) put_escaped(page->out, (const char *)live_licences);
}

/* Copies explorer.html and puts each part in place of its name in double braces. */
static void put_template(page_writer *page)
{
    static const struct {
        const char *mark;
        void (*put)(page_writer *page);
    } parts[] = {
        {"{{model}}", put_model},       {"{{policy}}", put_policy},   {"{{style}}", put_style},
        {"{{data}}", put_data},         {"{{script}}", put_script},   {"{{worker}}", put_worker},
        {"{{licences}}", put_licences}, {"{{weights}}", put_weights},
    };
    const char *at = (const char *)explorer_html, *end = at + explorer_html_bytes;
    while (at < end) {
        const char *mark = strstr(at, "{{");
        if (!mark) mark = end;
        fwrite(at, 1, (size_t)(mark - at), page->out);
        at = mark;
        for (size_t k = 0; at < end && k < sizeof parts / sizeof *parts; k++)
            if (strncmp(mark, parts[k].mark, strlen(parts[k].mark)) == 0) {
                parts[k].put(page);
                at = mark + strlen(parts[k].mark);
                break;
            }
        if (at == mark && at < end) fputc(*at++, page->out);
    }
}

void explorer_page_write(const common_options *options, const explorer_contents *contents)
{
    text_output output;
    text_output_open(options, contents->page, &output);
    page_writer page = {.options = options, .out = output.file, .contents = contents};
    put_template(&page);
    text_output_close(options, &output);
}
