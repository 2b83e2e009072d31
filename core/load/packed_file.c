/* Reads and writes deberta.packed: the arena of an opened model and, in low precision, all other data that it needs.
 *
 * SPDX-License-Identifier: MIT */
#include "core/load/packed_file.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/cpu.h"
#include "core/base/numbers.h"
#include "core/base/sha256.h"
#include "core/base/text.h"
#include "core/io/atomic_file.h"
#include "core/io/mapped_file.h"

enum { CONTENTS_OFFSET = 4096, DIGEST_BYTES = 64, BLOCK_BYTES = 256 << 10 };

typedef struct packed_header {
    char magic[16];
    uint32_t layout, contents_offset;
    uint64_t section_bytes[PACKED_SECTIONS];
    char stamp[DIGEST_BYTES];
    char config[DIGEST_BYTES];
    char source[DIGEST_BYTES]; /* checkpoint_digest */
    char table[DIGEST_BYTES];  /* SHA-256 of the table of digests after the sections */
    char header[DIGEST_BYTES]; /* SHA-256 of all bytes before it */
} packed_header;

_Static_assert(sizeof(packed_header) == 368, "the header is written as it is in memory, without gaps");

static void digest_of(const void *bytes, size_t count_bytes, char digest[DIGEST_BYTES])
{
    sha256 hash;
    char text[DIGEST_BYTES + 1];
    sha256_begin(&hash, cpu_features());
    sha256_add(&hash, bytes, count_bytes);
    sha256_finish(&hash, text);
    memcpy(digest, text, DIGEST_BYTES);
}

static bool has_digest(const void *bytes, size_t count_bytes, const char digest[DIGEST_BYTES])
{
    char found[DIGEST_BYTES];
    digest_of(bytes, count_bytes, found);
    return memcmp(found, digest, DIGEST_BYTES) == 0;
}

static size_t block_count(size_t section_bytes) { return ceiling_divide(section_bytes, BLOCK_BYTES); }

/* Fills the header's fields that need no full reading of the sections or the checkpoint. */
static deberta_status begin_header(const checkpoint *files, const packed_sections *sections, packed_header *header,
                                   deberta_error *err)
{
    *header = (packed_header){
        .magic = "deberta packed\n",
        .layout = PACKED_FILE_LAYOUT,
        .contents_offset = CONTENTS_OFFSET,
    };
    for (size_t k = 0; k < PACKED_SECTIONS; k++) header->section_bytes[k] = sections->of[k].size_bytes;
    char stamp[DIGEST_BYTES + 1];
    DEBERTA_TRY(checkpoint_stamp(files, stamp, err));
    memcpy(header->stamp, stamp, DIGEST_BYTES);
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- sections */

/* Places of all sections, blocks and digests in a file. */
typedef struct packed_plan {
    size_t section_bytes[PACKED_SECTIONS], offsets[PACKED_SECTIONS], first_blocks[PACKED_SECTIONS + 1];
    size_t digests_offset, end;
} packed_plan;

static size_t plan_blocks(const packed_plan *plan) { return plan->first_blocks[PACKED_SECTIONS]; }

/* Returns false if the sections are larger than memory can be. */
static bool plan_sections(packed_plan *plan, const uint64_t section_bytes[PACKED_SECTIONS])
{
    size_t at = CONTENTS_OFFSET, blocks = 0;
    for (size_t k = 0; k < PACKED_SECTIONS; k++) {
        if (section_bytes[k] > SIZE_MAX / 8 || at > SIZE_MAX / 8) return false;
        if (section_bytes[k]) at = round_up(at, ARENA_ALIGNMENT_BYTES);
        plan->section_bytes[k] = section_bytes[k];
        plan->offsets[k] = at;
        plan->first_blocks[k] = blocks;
        at += section_bytes[k];
        blocks += block_count(section_bytes[k]);
    }
    plan->first_blocks[PACKED_SECTIONS] = blocks;
    plan->digests_offset = at;
    plan->end = at + blocks * DIGEST_BYTES;
    return true;
}

/* One block of a section; blocks are numbered from the first section on. */
typedef struct packed_block {
    size_t section, start, size_bytes; /* byte offset in the section, and size */
} packed_block;

static packed_block block_of(const packed_plan *plan, size_t block)
{
    size_t section = 0;
    while (block >= plan->first_blocks[section + 1]) section++;
    const size_t start = (block - plan->first_blocks[section]) * BLOCK_BYTES;
    return (packed_block){section, start, minimum(BLOCK_BYTES, plan->section_bytes[section] - start)};
}

/* --------------------------------------------------------------------------------------------------------- comparing */

/* A mapped file whose size and header are right. */
typedef struct packed_view {
    const uint8_t *bytes;
    const packed_header *header;
    packed_plan plan;
} packed_view;

static const char *digests_of(const packed_view *view) { return (const char *)view->bytes + view->plan.digests_offset; }

static bool block_is_right(const packed_view *view, size_t block)
{
    const packed_block found = block_of(&view->plan, block);
    return has_digest(view->bytes + view->plan.offsets[found.section] + found.start, found.size_bytes,
                      digests_of(view) + block * DIGEST_BYTES);
}

/* Returns whether the arena's last block and the table of names match their digests. */
static bool ends_are_right(const packed_view *view)
{
    const size_t *first = view->plan.first_blocks;
    for (size_t block = first[PACKED_TENSORS]; block < first[PACKED_SECTIONS]; block++)
        if (!block_is_right(view, block)) return false;
    return block_is_right(view, first[PACKED_ARENA + 1] - 1);
}

/* Returns the reason why bytes are not the header of this version, or NULL. */
static const char *foreign(const mapped_file *file)
{
    static const packed_header own = {.magic = "deberta packed\n"};
    const packed_header *found = (const packed_header *)file->bytes;
    if (file->size_bytes < sizeof *found || memcmp(found->magic, own.magic, sizeof found->magic) != 0)
        return "is no file of packed weights";
    if (found->layout != PACKED_FILE_LAYOUT || found->contents_offset != CONTENTS_OFFSET)
        return "was written by another version of this library";
    return NULL;
}

/* Returns the reason why the file cannot be used, or NULL if its header matches the expected one. */
static const char *misfit(const mapped_file *file, const packed_header *expected, packed_view *view)
{
    const packed_header *found = (const packed_header *)file->bytes;
    const char *problem = foreign(file);
    if (problem) return problem;
    *view = (packed_view){.bytes = file->bytes, .header = found};
    /* The size is checked first, because bytes beyond the end of a mapped file must not be touched. */
    if (!plan_sections(&view->plan, expected->section_bytes) || file->size_bytes < view->plan.end)
        return "is shorter than what this model needs";
    if (file->size_bytes > view->plan.end ||
        memcmp(found->section_bytes, expected->section_bytes, sizeof found->section_bytes) != 0)
        return "is of another size than what this model needs";
    if (!has_digest(found, offsetof(packed_header, header), found->header)) return "is damaged: its header";
    if (memcmp(found->stamp, expected->stamp, DIGEST_BYTES) != 0)
        return "was made of other files than the model's config.json and weights (name, size, time of modification or "
               "content)";
    if (!has_digest(digests_of(view), plan_blocks(&view->plan) * DIGEST_BYTES, found->table))
        return "is damaged: its table of digests";
    return NULL;
}

static void point_to_sections(const packed_view *view, packed_sections *sections)
{
    for (size_t k = 0; k < PACKED_SECTIONS; k++) {
        sections->of[k].bytes = view->bytes + view->plan.offsets[k];
        sections->of[k].size_bytes = view->plan.section_bytes[k];
    }
}

deberta_status packed_file_map(const checkpoint *files, deberta_precision precision, packed_sections *sections,
                               mapped_file *file, deberta_packed *packed, deberta_error *err)
{
    char *path = NULL;
    struct stat status;
    *packed = DEBERTA_PACKED_NONE;
    packed_view view;
    packed_header expected;
    deberta_error unusable = {0};
    DEBERTA_TRY(checkpoint_path(files, deberta_packed_file_name(precision), &path, err));
    const bool there = stat(path, &status) == 0;
    const deberta_status opened = there ? mapped_file_open(file, path, &unusable) : DEBERTA_E_FILE;
    free(path);
    if (!there) return DEBERTA_OK;
    *packed = DEBERTA_PACKED_STALE;
    if (opened == DEBERTA_E_MEMORY && err) *err = unusable;
    if (opened != DEBERTA_OK) return opened == DEBERTA_E_MEMORY ? opened : DEBERTA_OK;
    const deberta_status described = begin_header(files, sections, &expected, err);
    if (described != DEBERTA_OK) {
        mapped_file_close(file);
        return described;
    }
    if (!misfit(file, &expected, &view) && ends_are_right(&view)) {
        point_to_sections(&view, sections);
        *packed = DEBERTA_PACKED_MAPPED;
    } else {
        mapped_file_close(file);
    }
    return DEBERTA_OK;
}

static deberta_status check_blocks(const mapped_file *file, const packed_view *view, deberta_error *err)
{
    size_t wrong = 0, first = 0;
    for (size_t block = plan_blocks(&view->plan); block-- > 0;) {
        if (block_is_right(view, block)) continue;
        wrong++;
        first = block;
    }
    if (!wrong) return DEBERTA_OK;
    const packed_block found = block_of(&view->plan, first);
    const size_t start = view->plan.offsets[found.section] + found.start;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                 "%s: is damaged: %zu of %zu blocks, the first at bytes %zu to %zu, are not what was written",
                 file->name.text, wrong, plan_blocks(&view->plan), start, start + found.size_bytes - 1);
}

static deberta_status check_file(const checkpoint *files, const mapped_file *file, const packed_sections *sections,
                                 deberta_error *err)
{
    const char *path = file->name.text;
    char source[DIGEST_BYTES + 1];
    packed_view view;
    packed_header expected;
    DEBERTA_TRY(begin_header(files, sections, &expected, err));
    const char *reason = misfit(file, &expected, &view);
    if (reason) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s", path, reason);
    DEBERTA_TRY(check_blocks(file, &view, err));
    DEBERTA_TRY(checkpoint_digest(files, source, err));
    if (memcmp(view.header->source, source, DIGEST_BYTES) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "%s: was made of other weights: the model's files have the SHA-256 %s, those that were packed "
                     "%.64s",
                     path, source, view.header->source);
    return DEBERTA_OK;
}

deberta_status packed_file_check(const checkpoint *files, deberta_precision precision, packed_sections sections,
                                 deberta_error *err)
{
    char *path = NULL;
    mapped_file file;
    DEBERTA_TRY(checkpoint_path(files, deberta_packed_file_name(precision), &path, err));
    deberta_status status = mapped_file_open(&file, path, err);
    free(path);
    if (status != DEBERTA_OK) return status;
    status = check_file(files, &file, &sections, err);
    return mapped_file_end(&file, status, err);
}

/* ------------------------------------------------------------------------------------------------- without a checkpoint */

static deberta_status path_in(const char *folder, const char *name, char **path, deberta_error *err)
{
    *path = path_join(folder, name);
    if (!*path) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for a path", QUOTE(folder));
    return DEBERTA_OK;
}

bool packed_file_is_alone(const char *folder, deberta_precision precision)
{
    if (precision == DEBERTA_PRECISION_FLOAT32) return false;
    char *path = path_join(folder, deberta_packed_file_name(precision));
    struct stat status;
    const bool there = path && stat(path, &status) == 0;
    free(path);
    return there && !checkpoint_has_weights(folder);
}

static deberta_status digest_config(const char *folder, char digest[65], deberta_error *err)
{
    char *path = NULL;
    DEBERTA_TRY(path_in(folder, "config.json", &path, err));
    const deberta_status status = file_digest(path, digest, err);
    free(path);
    return status;
}

/* Returns the reason why a packed file without a checkpoint cannot be used, or NULL; its own header gives the expected
 * sizes. */
static const char *misfit_alone(const mapped_file *file, packed_view *view)
{
    const char *problem = foreign(file);
    if (problem) return problem;
    packed_header expected;
    memcpy(&expected, file->bytes, sizeof expected);
    if (!has_digest(&expected, offsetof(packed_header, header), expected.header)) return "is damaged: its header";
    problem = misfit(file, &expected, view);
    if (problem) return problem;
    if (!expected.section_bytes[PACKED_ARENA] || !expected.section_bytes[PACKED_TENSORS])
        return "has no words and names, and needs the model's weights beside it";
    return ends_are_right(view) ? NULL : "is damaged: what the names are in, or the end of its weights";
}

static deberta_status fit_alone(const mapped_file *file, const char *folder, packed_sections *sections,
                                deberta_error *err)
{
    packed_view view;
    char config[DIGEST_BYTES + 1];
    DEBERTA_TRY(digest_config(folder, config, err));
    const char *problem = misfit_alone(file, &view);
    if (!problem && memcmp(config, view.header->config, DIGEST_BYTES) != 0)
        problem = "was made with another config.json";
    if (!problem) {
        point_to_sections(&view, sections);
        problem = packed_tensors_problem(&(packed_tensors){.bytes = sections->of[PACKED_TENSORS].bytes,
                                                           .size_bytes = sections->of[PACKED_TENSORS].size_bytes});
    }
    if (problem) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s", file->name.text, problem);
    return DEBERTA_OK;
}

deberta_status packed_file_open_alone(const char *folder, deberta_precision precision, mapped_file *file,
                                      packed_sections *sections, deberta_error *err)
{
    char *path = NULL;
    DEBERTA_TRY(path_in(folder, deberta_packed_file_name(precision), &path, err));
    deberta_status status = mapped_file_open(file, path, err);
    free(path);
    if (status != DEBERTA_OK) return status;
    status = fit_alone(file, folder, sections, err);
    if (status != DEBERTA_OK) mapped_file_close(file);
    return status;
}

deberta_status packed_file_check_alone(const mapped_file *file, deberta_error *err)
{
    packed_view view;
    const char *problem = misfit_alone(file, &view);
    if (problem) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s", file->name.text, problem);
    return check_blocks(file, &view, err);
}

void packed_file_source(const mapped_file *file, char digest[65])
{
    memcpy(digest, ((const packed_header *)file->bytes)->source, DIGEST_BYTES);
    digest[DIGEST_BYTES] = '\0';
}

/* ---------------------------------------------------------------------------------------------------------- writing */

static deberta_status write_parts(atomic_file *file, const packed_header *header, const packed_sections *sections,
                                  const char *digests, deberta_error *err)
{
    packed_plan plan;
    if (!plan_sections(&plan, header->section_bytes)) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "a packed file is too large");
    DEBERTA_TRY(atomic_file_write(file, 0, header, sizeof *header, err));
    for (size_t k = 0; k < PACKED_SECTIONS; k++) {
        const size_t size_bytes = sections->of[k].size_bytes;
        if (size_bytes) DEBERTA_TRY(atomic_file_write(file, plan.offsets[k], sections->of[k].bytes, size_bytes, err));
    }
    return atomic_file_write(file, plan.digests_offset, digests, plan_blocks(&plan) * DIGEST_BYTES, err);
}

static void tell_temporary(const deberta_pack_options *options, const char *path)
{
    if (options->on_temporary) options->on_temporary(options->context, path);
}

static deberta_status write_file(const char *path, const packed_header *header, const packed_sections *sections,
                                 const char *digests, const deberta_pack_options *options, deberta_error *err)
{
    atomic_file *file = NULL;
    DEBERTA_TRY(atomic_file_open(&file, path, err));
    tell_temporary(options, atomic_file_temporary(file));
    deberta_status status = write_parts(file, header, sections, digests, err);
    if (status == DEBERTA_OK)
        status = atomic_file_commit(&file, err);
    else
        atomic_file_discard(&file);
    tell_temporary(options, NULL);
    return status;
}

/* Writes the digests of all blocks, one after the other, to new memory. */
static deberta_status digest_sections(const packed_sections *sections, packed_header *header, char **digests,
                                      deberta_error *err)
{
    packed_plan plan;
    *digests = plan_sections(&plan, header->section_bytes) ? malloc(plan_blocks(&plan) * DIGEST_BYTES + 1) : NULL;
    if (!*digests) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the digests of packed weights");
    for (size_t block = 0; block < plan_blocks(&plan); block++) {
        const packed_block found = block_of(&plan, block);
        digest_of((const uint8_t *)sections->of[found.section].bytes + found.start, found.size_bytes,
                  *digests + block * DIGEST_BYTES);
    }
    digest_of(*digests, plan_blocks(&plan) * DIGEST_BYTES, header->table);
    digest_of(header, offsetof(packed_header, header), header->header);
    return DEBERTA_OK;
}

static deberta_status describe_source(const checkpoint *files, packed_header *header, deberta_error *err)
{
    char *path = NULL, digest[DIGEST_BYTES + 1];
    DEBERTA_TRY(checkpoint_digest(files, digest, err));
    memcpy(header->source, digest, DIGEST_BYTES);
    DEBERTA_TRY(checkpoint_path(files, "config.json", &path, err));
    const deberta_status status = file_digest(path, digest, err);
    free(path);
    memcpy(header->config, digest, DIGEST_BYTES);
    return status;
}

deberta_status packed_file_write(const checkpoint *files, const packed_sections *sections,
                                 const deberta_pack_options *options, deberta_error *err)
{
    packed_header header;
    char *path = NULL, *digests = NULL;
    DEBERTA_TRY(begin_header(files, sections, &header, err));
    DEBERTA_TRY(describe_source(files, &header, err));
    DEBERTA_TRY(digest_sections(sections, &header, &digests, err));
    deberta_status status = checkpoint_path(files, deberta_packed_file_name(options->precision), &path, err);
    if (status == DEBERTA_OK) status = write_file(path, &header, sections, digests, options, err);
    free(path);
    free(digests);
    return status;
}
