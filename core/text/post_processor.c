/* Recognises the two templates of special tokens around a text, [CLS] A [SEP] and that of pairs, in their three
 * notations.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/post_processor.h"

#include <string.h>

#include "core/io/json_file.h"
#include "core/text/json_value.h"

#define FRAMES "expected [CLS] A [SEP] and, of pairs, [CLS] A [SEP] B [SEP] or [CLS] A [SEP] [SEP] B [SEP]"

/* ------------------------------------------------------------------------------------------------------ template */

/* Returns a part of a template as a letter: A and B the segments, c and s the first and the last token of a single
 * text, ? for anything else. *type is its token type, -1 if it has none. */
static char letter_of(const json_t *part, const char *cls, const char *sep, json_int_t *type)
{
    const json_t *segment = json_object_get(part, "Sequence"), *token = json_object_get(part, "SpecialToken");
    const json_t *of = segment ? segment : token, *type_id = json_object_get(of, "type_id");
    const char *id = json_string_value(json_object_get(of, "id"));
    *type = json_is_integer(type_id) ? json_integer_value(type_id) : -1;
    if (!id) return '?';
    if (segment) return strcmp(id, "A") == 0 || strcmp(id, "B") == 0 ? *id : '?';
    return strcmp(id, cls) == 0 ? 'c' : strcmp(id, sep) == 0 ? 's' : '?';
}

static bool is_template(const json_t *parts, const char *letters, const char *types, const char *cls, const char *sep)
{
    if (json_array_size(parts) != strlen(letters)) return false;
    for (size_t i = 0; letters[i]; i++) {
        json_int_t type;
        if (letter_of(json_array_get(parts, i), cls, sep, &type) != letters[i] || type != types[i] - '0') return false;
    }
    return true;
}

static const char *token_name(const json_t *part)
{
    return json_string_value(json_object_get(json_object_get(part, "SpecialToken"), "id"));
}

static deberta_status check_id(frame_token *token, const json_t *id, const char *where, deberta_error *err)
{
    if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > INT32_MAX)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: the post_processor gives '%s' no id of a token", where,
                     QUOTE(token->text));
    token->id = (int32_t)json_integer_value(id);
    return DEBERTA_OK;
}

static deberta_status read_template_token(frame_token *token, const json_t *tokens, const char *where,
                                          deberta_error *err)
{
    const json_t *ids = json_object_get(json_object_get(tokens, token->text), "ids");
    return check_id(token, json_array_size(ids) == 1 ? json_array_get(ids, 0) : NULL, where, err);
}

static deberta_status read_template(text_frame *frame, const json_t *processor, const char *where, deberta_error *err)
{
    const json_t *single = json_object_get(processor, "single"), *pair = json_object_get(processor, "pair");
    const char *cls = token_name(json_array_get(single, 0)), *sep = token_name(json_array_get(single, 2));
    if (!cls || !sep || !is_template(single, "cAs", "000", cls, sep))
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: the post_processor puts another frame around a text; %s", where,
                     FRAMES);
    if (is_template(pair, "cAsBs", "00011", cls, sep))
        frame->pair_separators = 1;
    else if (is_template(pair, "cAssBs", "000000", cls, sep) || is_template(pair, "cAssBs", "000011", cls, sep))
        frame->pair_separators = 2;
    else
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: the post_processor puts another frame around a pair; %s", where,
                     FRAMES);
    frame->cls.text = cls;
    frame->sep.text = sep;
    const json_t *tokens = json_object_get(processor, "special_tokens");
    DEBERTA_TRY(read_template_token(&frame->cls, tokens, where, err));
    return read_template_token(&frame->sep, tokens, where, err);
}

/* ------------------------------------------------------------------------------------------------- named frames */

/* Reads "cls": ["[CLS]", 1]. */
static deberta_status read_named_token(frame_token *token, const json_t *processor, const char *key, const char *where,
                                       deberta_error *err)
{
    const json_t *named = json_object_get(processor, key);
    token->text = json_string_value(json_array_get(named, 0));
    if (!token->text)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s of the post_processor is %s, expected a text and an id", where, key,
                     json_describe(named).text);
    return check_id(token, json_array_get(named, 1), where, err);
}

static deberta_status read_named(text_frame *frame, const json_t *processor, size_t separators, const char *where,
                                 deberta_error *err)
{
    frame->pair_separators = separators;
    DEBERTA_TRY(read_named_token(&frame->cls, processor, "cls", where, err));
    return read_named_token(&frame->sep, processor, "sep", where, err);
}

static deberta_status read_processor(text_frame *frame, json_t *processor, const char *where, deberta_error *err)
{
    json_t *type, *list, *item;
    DEBERTA_TRY(json_value_required(&type, processor, "type", JSON_STRING, where, err));
    const char *name = json_string_value(type);
    if (strcmp(name, "TemplateProcessing") == 0) return read_template(frame, processor, where, err);
    if (strcmp(name, "BertProcessing") == 0) return read_named(frame, processor, 1, where, err);
    if (strcmp(name, "RobertaProcessing") == 0) return read_named(frame, processor, 2, where, err);
    /* ByteLevel changes its own offsets, which are not used here. */
    if (strcmp(name, "ByteLevel") == 0) return DEBERTA_OK;
    if (strcmp(name, "Sequence") != 0)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: the post_processor '%s' is not supported", where, QUOTE(name));
    DEBERTA_TRY(json_value_required(&list, processor, "processors", JSON_ARRAY, where, err));
    size_t i;
    json_array_foreach(list, i, item)
    {
        const char *inner = json_string_value(json_object_get(item, "type"));
        if (!inner || strcmp(inner, "Sequence") == 0 || (frame->cls.text && strcmp(inner, "ByteLevel") != 0))
            DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: processors[%zu] is %s, expected one frame", where, i,
                         json_describe(item).text);
        DEBERTA_TRY(read_processor(frame, item, where, err));
    }
    return DEBERTA_OK;
}

deberta_status post_processor_read(text_frame *frame, json_t *root, const char *where, deberta_error *err)
{
    json_t *processor;
    *frame = (text_frame){0};
    DEBERTA_TRY(json_value_member(&processor, root, "post_processor", JSON_OBJECT, where, err));
    if (processor) DEBERTA_TRY(read_processor(frame, processor, where, err));
    if (!frame->cls.text)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: no post_processor puts a frame around texts; %s", where, FRAMES);
    return DEBERTA_OK;
}
