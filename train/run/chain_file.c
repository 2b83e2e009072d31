/* Parses chain.jsonl strictly (a line is what chain_print_record writes, to the byte), and computes the link of each
 * line by SHA-256.
 *
 * SPDX-License-Identifier: MIT */
#include "train/run/chain_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/cpu.h"
#include "core/base/numbers.h"
#include "core/base/sha256.h"
#include "core/io/json_file.h"
#include "core/io/mapped_file.h"
#include "core/io/quote.h"

enum { PATH_BYTES = 4096, MOST_BYTES = 1 << 30 };

/* Folders of saved models that a record may name. */
static const char *const chain_models[] = {DEBERTA_CHAIN_MODELS, NULL};

static const json_limits line_limits = {.bytes = CHAIN_LINE_BYTES, .depth = 2, .values = 16};

/* --------------------------------------------------------------------------------------------------------- printing */

/* Appends the link of the object in `line`, and closes it. */
static void chain_close(char line[CHAIN_LINE_BYTES], char link[CHAIN_DIGEST_BYTES])
{
    sha256 hash;
    size_t length = strlen(line);
    snprintf(line + length, CHAIN_LINE_BYTES - length, "}");
    sha256_begin(&hash, cpu_features());
    sha256_add(&hash, link, strlen(link));
    sha256_add(&hash, line, length + 1);
    sha256_finish(&hash, link);
    snprintf(line + length, CHAIN_LINE_BYTES - length, ", \"link\": \"%s\"}\n", link);
}

void chain_print_head(char line[CHAIN_LINE_BYTES], const char *recipe, size_t every, char link[CHAIN_DIGEST_BYTES])
{
    *link = 0;
    snprintf(line, CHAIN_LINE_BYTES, "{\"deberta-chain\": 1, \"recipe\": \"%s\", \"every\": %zu", recipe, every);
    chain_close(line, link);
}

void chain_print_record(char line[CHAIN_LINE_BYTES], size_t step, const char *of, const char *digest,
                        char link[CHAIN_DIGEST_BYTES])
{
    if (of)
        snprintf(line, CHAIN_LINE_BYTES, "{\"step\": %zu, \"of\": \"%s\", \"sha256\": \"%s\"", step, of, digest);
    else
        snprintf(line, CHAIN_LINE_BYTES, "{\"step\": %zu, \"state\": \"%s\"", step, digest);
    chain_close(line, link);
}

/* ---------------------------------------------------------------------------------------------------------- parsing */

/* Returns a member that is a digest, or NULL. */
static const char *chain_digest(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text && sha256_is_digest(text) ? text : NULL;
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* Returns whether `line` equals the printed line except for its link, which only the check of links judges. */
static bool same_but_link(const char *line, size_t bytes, const char *printed)
{
    /* 64 digits, a quote, a brace and the end of the line */
    const size_t link_bytes = CHAIN_DIGEST_BYTES + strlen("\"}");
    const size_t length = strlen(printed);
    return bytes == length && memcmp(line, printed, length - link_bytes) == 0 &&
           memcmp(line + length - 3, printed + length - 3, 3) == 0;
}

static bool parse_head(deberta_chain *chain, const json_t *object, const char *line, size_t bytes)
{
    char printed[CHAIN_LINE_BYTES], link[CHAIN_DIGEST_BYTES];
    const char *recipe = chain_digest(object, "recipe"), *found = chain_digest(object, "link");
    const json_int_t every = json_integer_value(json_object_get(object, "every"));
    if (!recipe || !found || every < 1) return false;
    chain_print_head(printed, recipe, (size_t)every, link);
    if (!same_but_link(line, bytes, printed)) return false;
    memcpy(chain->recipe, recipe, sizeof chain->recipe);
    memcpy(chain->first_link, found, sizeof chain->first_link);
    chain->info = (deberta_chain_info){.every = (size_t)every, .follows = strcmp(found, link) == 0};
    return true;
}

/* Reads the name of a saved model. It becomes a path, so only names that runs write are accepted. */
static const char *find_model(const char *of)
{
    const char *const *name = chain_models;
    while (*name && strcmp(*name, of) != 0) name++;
    return *name;
}

static bool parse_record(deberta_chain *chain, const json_t *object, const char *line, size_t bytes)
{
    char printed[CHAIN_LINE_BYTES], link[CHAIN_DIGEST_BYTES];
    const json_t *step = json_object_get(object, "step");
    const char *of = text_of(object, "of"), *digest = chain_digest(object, of ? "sha256" : "state"),
               *found = chain_digest(object, "link");
    const size_t last = chain->info.count;
    const chain_line *before = last ? &chain->lines[last - 1] : NULL;
    if (!json_is_integer(step) || json_integer_value(step) < 0 || !digest || !found || (of && !find_model(of)))
        return false;
    memcpy(link, before ? before->link : chain->first_link, sizeof link);
    chain_print_record(printed, (size_t)json_integer_value(step), of, digest, link);
    if (!same_but_link(line, bytes, printed)) return false;
    chain_line *to = &chain->lines[chain->info.count++];
    to->record = (deberta_chain_record){.step = (size_t)json_integer_value(step), .follows = strcmp(found, link) == 0};
    to->record.of = of ? find_model(of) : NULL;
    memcpy(to->digest, digest, sizeof to->digest);
    memcpy(to->link, found, sizeof to->link);
    return true;
}

static deberta_status reserve_line(deberta_chain *chain, deberta_error *err)
{
    if (chain->info.count < chain->capacity) return DEBERTA_OK;
    const size_t capacity = maximum(2 * chain->capacity, (size_t)64);
    chain_line *lines = realloc(chain->lines, capacity * sizeof *lines);
    if (!lines) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the records of a chain");
    chain->lines = lines;
    chain->capacity = capacity;
    return DEBERTA_OK;
}

static deberta_status parse_line(deberta_chain *chain, const char *path, size_t number, const char *line, size_t bytes,
                                 deberta_error *err)
{
    json_t *object = NULL;
    char where[PATH_BYTES];
    snprintf(where, sizeof where, "%s:%zu", QUOTE(path), number);
    DEBERTA_TRY(reserve_line(chain, err));
    DEBERTA_TRY(json_file_parse(&object, line, bytes, &line_limits, where, err));
    const bool fine = number == 1 ? parse_head(chain, object, line, bytes) : parse_record(chain, object, line, bytes);
    json_decref(object);
    if (fine) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                 number == 1 ? "%s is no first line of a chain: expected {\"deberta-chain\": 1, \"recipe\", \"every\", "
                               "\"link\"} as a run writes it"
                             : "%s is no record of a chain: expected {\"step\", \"state\", \"link\"}, or {\"step\", "
                               "\"of\", \"sha256\", \"link\"}, as a run writes them",
                 where);
}

/* Sets the pointers of records into their lines, which do not move any more. */
static void chain_settle(deberta_chain *chain)
{
    for (size_t i = 0; i < chain->info.count; i++) {
        chain_line *line = &chain->lines[i];
        line->record.digest = line->digest;
        line->record.link = line->link;
    }
    chain->info.recipe = chain->recipe;
    chain->info.head = chain->info.count ? chain->lines[chain->info.count - 1].link : chain->first_link;
}

/* may_be_cut: whether to accept a last line without its end, left by a run that was killed while writing it. */
static deberta_status parse_chain(deberta_chain *chain, const char *path, const mapped_file *file, bool may_be_cut,
                                  deberta_error *err)
{
    const char *at = (const char *)file->bytes, *end = at + file->size_bytes;
    for (size_t number = 1; at < end; number++) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        if (!line_end && may_be_cut) break;
        if (!line_end) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s:%zu: the line is cut off", QUOTE(path), number);
        DEBERTA_TRY(parse_line(chain, path, number, at, (size_t)(line_end + 1 - at), err));
        at = line_end + 1;
    }
    chain->whole_bytes = (size_t)(at - (const char *)file->bytes);
    chain_settle(chain);
    if (*chain->first_link || may_be_cut) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s is empty: expected the lines of a chain", QUOTE(path));
}

static deberta_status chain_read(deberta_chain **result, const char *folder, bool may_be_cut, deberta_error *err)
{
    char path[PATH_BYTES];
    mapped_file file = {0};
    struct stat about;
    *result = NULL;
    if (snprintf(path, sizeof path, "%s/" CHAIN_FILE, folder) >= PATH_BYTES) *path = 0;
    const bool is_there = stat(path, &about) == 0, is_empty = is_there && about.st_size == 0;
    if (may_be_cut && !is_there && errno == ENOENT) return DEBERTA_OK;
    if (!(may_be_cut && is_empty)) DEBERTA_TRY(mapped_file_open_at_most(&file, path, MOST_BYTES, err));
    deberta_chain *chain = calloc(1, sizeof *chain);
    deberta_status status = chain ? parse_chain(chain, path, &file, may_be_cut, err)
                                  : status_fail(err, DEBERTA_E_MEMORY, "no memory for a chain");
    mapped_file_close(&file);
    if (status == DEBERTA_OK)
        *result = chain;
    else
        deberta_chain_free(&chain);
    return status;
}

deberta_status chain_read_begun(deberta_chain **chain, const char *folder, deberta_error *err)
{
    return chain_read(chain, folder, true, err);
}

deberta_status deberta_chain_open(deberta_chain **chain, const char *folder, deberta_error *err)
{
    if (!chain || !folder) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_chain_open needs a chain and a folder");
    return chain_read(chain, folder, false, err);
}

void deberta_chain_free(deberta_chain **place)
{
    if (!place || !*place) return;
    free((*place)->lines);
    free(*place);
    *place = NULL;
}

const deberta_chain_info *deberta_chain_describe(const deberta_chain *chain) { return &chain->info; }

const deberta_chain_record *deberta_chain_record_at(const deberta_chain *chain, size_t index)
{
    return index < chain->info.count ? &chain->lines[index].record : NULL;
}
