/* Interprets the pickle opcodes that state dicts of tensors consist of. One opcode makes at most a few small items.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "core/io/mapped_file.h"
#include "core/io/pickle_machine.h"

/* A tensor in a state dict takes about 150 bytes. */
enum { MAX_PICKLE_BYTES = 64 << 20, MAX_PROTOCOL = 5 };

/* ------------------------------------------------------------------------------------------- operands in the stream */

/* Returns the next `count` bytes and moves the stream past them. */
static deberta_status pickle_read_take(pickle *p, size_t count, const uint8_t **bytes)
{
    if (!range_is_inside(p->at, count, p->size_bytes))
        PICKLE_REFUSE(p, "%zu bytes are needed, %zu are left", count, p->size_bytes - p->at);
    *bytes = p->bytes + p->at;
    p->at += count;
    return DEBERTA_OK;
}

/* Reads an unsigned little-endian number of 1, 2, 4 or 8 bytes. */
static deberta_status take_number(pickle *p, size_t width, uint64_t *number)
{
    const uint8_t *bytes;
    DEBERTA_TRY(pickle_read_take(p, width, &bytes));
    *number = 0;
    for (size_t i = width; i-- > 0;) *number = *number << 8 | bytes[i];
    return DEBERTA_OK;
}

/* Reads a number of `width` bytes and as many bytes of text (or bytes, or a long). */
static deberta_status push_text(pickle *p, pickle_kind kind, size_t width)
{
    uint64_t length;
    const uint8_t *bytes;
    DEBERTA_TRY(take_number(p, width, &length));
    DEBERTA_TRY(pickle_read_take(p, length, &bytes));
    return pickle_push(p,
                       (pickle_value){.kind = kind, .length_bytes = (uint32_t)length, .as.text = (const char *)bytes});
}

/* Reads a two's complement number of any length. Up to 8 bytes it becomes an integer. */
static deberta_status push_long(pickle *p, size_t width)
{
    DEBERTA_TRY(push_text(p, PICKLE_LONG, width));
    pickle_value *value = &pickle_stack_items(p)[p->stack.count - 1];
    if (value->length_bytes > 8) return DEBERTA_OK;
    const char *bytes = value->as.text;
    uint64_t number = value->length_bytes && bytes[value->length_bytes - 1] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = value->length_bytes; i-- > 0;) number = number << 8 | (uint8_t)bytes[i];
    *value = (pickle_value){.kind = PICKLE_INTEGER, .as.integer = (int64_t)number};
    return DEBERTA_OK;
}

/* Reads an integer: BININT1 and BININT2 are unsigned, BININT is signed. */
static deberta_status push_number(pickle *p, size_t width)
{
    uint64_t number;
    DEBERTA_TRY(take_number(p, width, &number));
    return pickle_push_integer(p, PICKLE_INTEGER, width == 4 ? (int32_t)number : (int64_t)number);
}

/* Reads a line of text without its newline. */
static deberta_status pickle_read_take_line(pickle *p, const char **line, size_t *length_bytes)
{
    const uint8_t *begin = p->bytes + p->at, *end = memchr(begin, '\n', p->size_bytes - p->at);
    if (!end) PICKLE_REFUSE(p, "%s", "the name of a global has no end");
    *line = (const char *)begin;
    *length_bytes = (size_t)(end - begin);
    p->at += *length_bytes + 1;
    return DEBERTA_OK;
}

/* Reads a global; protocol 2 writes its two names as lines. */
static deberta_status push_named_global(pickle *p)
{
    const char *module, *name;
    size_t module_bytes, name_bytes;
    DEBERTA_TRY(pickle_read_take_line(p, &module, &module_bytes));
    DEBERTA_TRY(pickle_read_take_line(p, &name, &name_bytes));
    return pickle_push_global(p, module, module_bytes, name, name_bytes);
}

/* --------------------------------------------------------------------------------------------------- the opcodes */

static deberta_status pop_one(pickle *p)
{
    pickle_value ignored;
    size_t first;
    /* Implements POP, which right after MARK removes the mark. */
    if (p->marks.count && p->stack.count == pickle_stack_floor(p)) return pickle_pop_mark(p, &first);
    return pickle_pop(p, &ignored);
}

static deberta_status duplicate(pickle *p)
{
    pickle_value value;
    DEBERTA_TRY(pickle_top(p, &value));
    return pickle_push(p, value);
}

static deberta_status pop_to_mark(pickle *p)
{
    size_t first;
    DEBERTA_TRY(pickle_pop_mark(p, &first));
    p->stack.count = first;
    return DEBERTA_OK;
}

static deberta_status tuple_from_mark(pickle *p)
{
    size_t first;
    DEBERTA_TRY(pickle_pop_mark(p, &first));
    return pickle_make_tuple(p, first);
}

/* Implements the memo opcodes, whose entry has one byte or four. */
static deberta_status memo_operand(pickle *p, size_t width, deberta_status (*action)(pickle *, size_t))
{
    uint64_t index;
    DEBERTA_TRY(take_number(p, width, &index));
    return action(p, index);
}

static deberta_status skip(pickle *p, size_t count)
{
    const uint8_t *ignored;
    return pickle_read_take(p, count, &ignored);
}

/* Makes the top of the stack the result. */
static deberta_status stop(pickle *p)
{
    pickle_value root;
    DEBERTA_TRY(pickle_top(p, &root));
    p->stopped = true;
    return DEBERTA_OK;
}

/* Comments give the names of Python's pickletools. */
static deberta_status step(pickle *p)
{
    uint64_t opcode;
    DEBERTA_TRY(take_number(p, 1, &opcode));
    switch (opcode) {
    case 0x95: return skip(p, 8);                             /* FRAME, whose length is not needed */
    case '.': return stop(p);                                 /* STOP */
    case '(': return pickle_push_mark(p);                     /* MARK */
    case '0': return pop_one(p);                              /* POP */
    case '1': return pop_to_mark(p);                          /* POP_MARK */
    case '2': return duplicate(p);                            /* DUP */
    case 'q': return memo_operand(p, 1, pickle_memo_store);   /* BINPUT */
    case 'r': return memo_operand(p, 4, pickle_memo_store);   /* LONG_BINPUT */
    case 0x94: return pickle_memo_store(p, p->memo_stores);   /* MEMOIZE */
    case 'h': return memo_operand(p, 1, pickle_memo_fetch);   /* BINGET */
    case 'j': return memo_operand(p, 4, pickle_memo_fetch);   /* LONG_BINGET */
    case 'N': return pickle_push_integer(p, PICKLE_NONE, 0);  /* NONE */
    case 0x88: return pickle_push_integer(p, PICKLE_BOOL, 1); /* NEWTRUE */
    case 0x89: return pickle_push_integer(p, PICKLE_BOOL, 0); /* NEWFALSE */
    case 'K': return push_number(p, 1);                       /* BININT1 */
    case 'M': return push_number(p, 2);                       /* BININT2 */
    case 'J': return push_number(p, 4);                       /* BININT, the only signed one */
    case 0x8a: return push_long(p, 1);                        /* LONG1 */
    case 0x8b: return push_long(p, 4);                        /* LONG4 */
    case 'G':
        DEBERTA_TRY(skip(p, 8));
        return pickle_push_integer(p, PICKLE_REAL, 0);      /* BINFLOAT, whose value is not needed */
    case 0x8c: return push_text(p, PICKLE_TEXT, 1);         /* SHORT_BINUNICODE */
    case 'X': return push_text(p, PICKLE_TEXT, 4);          /* BINUNICODE */
    case 0x8d: return push_text(p, PICKLE_TEXT, 8);         /* BINUNICODE8 */
    case 'U': return push_text(p, PICKLE_TEXT, 1);          /* SHORT_BINSTRING: the text of Python 2 */
    case 'T': return push_text(p, PICKLE_TEXT, 4);          /* BINSTRING */
    case 'C': return push_text(p, PICKLE_BYTES, 1);         /* SHORT_BINBYTES */
    case 'B': return push_text(p, PICKLE_BYTES, 4);         /* BINBYTES */
    case 0x8e: return push_text(p, PICKLE_BYTES, 8);        /* BINBYTES8 */
    case ')': return pickle_make_small_tuple(p, 0);         /* EMPTY_TUPLE */
    case 0x85: return pickle_make_small_tuple(p, 1);        /* TUPLE1 */
    case 0x86: return pickle_make_small_tuple(p, 2);        /* TUPLE2 */
    case 0x87: return pickle_make_small_tuple(p, 3);        /* TUPLE3 */
    case 't': return tuple_from_mark(p);                    /* TUPLE */
    case ']': return pickle_push_container(p, PICKLE_LIST); /* EMPTY_LIST */
    case '}': return pickle_push_container(p, PICKLE_DICT); /* EMPTY_DICT */
    case 'a': return pickle_fill_with(p, PICKLE_LIST, 1);   /* APPEND */
    case 'e': return pickle_fill_from_mark(p, PICKLE_LIST); /* APPENDS */
    case 's': return pickle_fill_with(p, PICKLE_DICT, 2);   /* SETITEM */
    case 'u': return pickle_fill_from_mark(p, PICKLE_DICT); /* SETITEMS */
    case 'c': return push_named_global(p);                  /* GLOBAL */
    case 0x93: return pickle_push_stack_global(p);          /* STACK_GLOBAL */
    case 'Q': return pickle_push_storage(p);                /* BINPERSID */
    case 'R': return pickle_call(p);                        /* REDUCE */
    case 'b': return pickle_discard_attributes(p);          /* BUILD */
    default: p->at--; PICKLE_REFUSE(p, "opcode 0x%02x, which no tensor needs", (unsigned)opcode);
    }
}

/* Each step consumes at least one byte, so this ends. */
static deberta_status pickle_read_run(pickle *p)
{
    const uint8_t *head;
    DEBERTA_TRY(pickle_read_take(p, 2, &head));
    if (head[0] != 0x80 || head[1] < 2 || head[1] > MAX_PROTOCOL)
        PICKLE_REFUSE(p, "it begins with 0x%02x 0x%02x, expected protocol 2 to %d", head[0], head[1], MAX_PROTOCOL);
    while (!p->stopped) DEBERTA_TRY(step(p));
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------------ interface */

deberta_status pickle_read(pickle **result, const uint8_t *bytes, size_t size_bytes, const char *where,
                           deberta_error *err)
{
    *result = NULL;
    pickle *p = calloc(1, sizeof *p);
    if (!p) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for reading its pickle", where);
    /* In a legacy file, gigabytes of values follow the pickle. */
    size_t limit_bytes = size_bytes < MAX_PICKLE_BYTES ? size_bytes : MAX_PICKLE_BYTES;
    *p = (pickle){.bytes = bytes, .size_bytes = limit_bytes, .where = where, .err = err};
    p->stack.item_bytes = p->memo.item_bytes = sizeof(pickle_value);
    p->marks.item_bytes = sizeof(size_t);
    p->cells.item_bytes = sizeof(pickle_cell);
    p->containers.item_bytes = sizeof(pickle_container);
    p->storages.item_bytes = sizeof(pickle_storage);
    p->tensors.item_bytes = sizeof(pickle_tensor);
    deberta_status status = pickle_read_run(p);
    if (status != DEBERTA_OK) {
        pickle_free(&p);
        return status;
    }
    p->where = NULL; /* The text belongs to the caller, and is not needed any more. */
    p->err = NULL;
    *result = p;
    return DEBERTA_OK;
}
