/* The pickle interpreter: what it understands, what it refuses, and what it costs.
 *
 * SPDX-License-Identifier: MIT */
#define TESTS_IN_LIMITED_MEMORY
#include "tests/unit/test.h"

#include "tests/unit/io_helpers.h"

#include "core/io/pickle.h"

static deberta_status read_bytes(pickle **p, const void *bytes, size_t count, deberta_error *error)
{
    *error = (deberta_error){0};
    return pickle_read(p, bytes, count, "file", error);
}

/* Protocol 2, the code, STOP. */
static deberta_status read_code(pickle **p, const buffer *code, buffer *whole, deberta_error *error)
{
    whole->count = 0;
    put(whole, "\x80\x02", 2);
    put_buffer(whole, code);
    put_byte(whole, '.');
    return read_bytes(p, whole->bytes, whole->count, error);
}

#define LITERAL(text) (text), sizeof(text) - 1

TEST(test_values)
{
    static const struct {
        const char *code;
        size_t bytes;
        pickle_kind kind;
        int64_t integer;
    } cases[] = {
        {LITERAL("N"), PICKLE_NONE, 0},
        {LITERAL("\x88"), PICKLE_BOOL, 1},
        {LITERAL("\x89"), PICKLE_BOOL, 0},
        {LITERAL("K\xff"), PICKLE_INTEGER, 255},
        {LITERAL("M\xff\xff"), PICKLE_INTEGER, 65535},
        {LITERAL("J\xff\xff\xff\xff"), PICKLE_INTEGER, -1},
        {LITERAL("J\x00\x00\x00\x80"), PICKLE_INTEGER, INT32_MIN},
        {LITERAL("\x8a\x00"), PICKLE_INTEGER, 0},
        {LITERAL("\x8a\x01\xfe"), PICKLE_INTEGER, -2},
        {LITERAL("\x8a\x02\x00\x80"), PICKLE_INTEGER, -32768},
        {LITERAL("\x8a\x05\x00\x00\x00\x00\x01"), PICKLE_INTEGER, INT64_C(1) << 32},
        {LITERAL("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"), PICKLE_INTEGER, INT64_MAX},
        {LITERAL("\x8b\x01\x00\x00\x00\x07"), PICKLE_INTEGER, 7},
        {LITERAL("G\x3f\xf0\x00\x00\x00\x00\x00\x00"), PICKLE_REAL, 0},
        {LITERAL("X\x02\x00\x00\x00hi"), PICKLE_TEXT, 0},
        {LITERAL("\x8c\x02hi"), PICKLE_TEXT, 0},
        {LITERAL("\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi"), PICKLE_TEXT, 0},
        {LITERAL("U\x02hi"), PICKLE_TEXT, 0},
        {LITERAL("T\x02\x00\x00\x00hi"), PICKLE_TEXT, 0},
        {LITERAL("C\x02hi"), PICKLE_BYTES, 0},
        {LITERAL("B\x02\x00\x00\x00hi"), PICKLE_BYTES, 0},
        {LITERAL("\x8e\x02\x00\x00\x00\x00\x00\x00\x00hi"), PICKLE_BYTES, 0},
        {LITERAL(")"), PICKLE_TUPLE, 0},
        {LITERAL("NN\x86"), PICKLE_TUPLE, 0},
        {LITERAL("(NNNNt"), PICKLE_TUPLE, 0},
        {LITERAL("]Na(NNe"), PICKLE_LIST, 0},
        {LITERAL("}K\x01Ns(K\x02NK\x03Nu"), PICKLE_DICT, 0},
        {LITERAL("K\x01K\x02"
                 "0"),
         PICKLE_INTEGER, 1},
        {LITERAL("K\x01("
                 "0"),
         PICKLE_INTEGER, 1},                       /* POP of a mark */
        {LITERAL("K\x01(NN1"), PICKLE_INTEGER, 1}, /* POP_MARK */
        {LITERAL("K\x01"
                 "2\x86"
                 "0K\x09"),
         PICKLE_INTEGER, 9},
        {LITERAL("K\x05q\x00"
                 "0h\x00"),
         PICKLE_INTEGER, 5},
        {LITERAL("K\x05r\x07\x00\x00\x00"
                 "0j\x07\x00\x00\x00"),
         PICKLE_INTEGER, 5},
        {LITERAL("K\x05\x94K\x06\x94"
                 "00h\x01"),
         PICKLE_INTEGER, 6},
        {LITERAL("\x95\x02\x00\x00\x00\x00\x00\x00\x00K\x05"), PICKLE_INTEGER, 5},
        {LITERAL("ccollections\nOrderedDict\n)R"), PICKLE_DICT, 0},
        {LITERAL("\x8c\x0b"
                 "collections\x8c\x0bOrderedDict\x93)R}b"),
         PICKLE_DICT, 0},
        {LITERAL("ctorch\nHalfStorage\n"), PICKLE_GLOBAL, 0},
    };
    FREED_BY(buffer_free) buffer code = {0}, whole = {0};
    FOR_ROWS(i, cases) {
        FREED_BY(pickle_free) pickle *p;
        deberta_error error;
        code.count = 0;
        put(&code, cases[i].code, cases[i].bytes);
        deberta_status status = read_code(&p, &code, &whole, &error);
        if (status != DEBERTA_OK) fail_msg("case %zu: %s", i, error.message);
        assert_int_equal(pickle_root(p).kind, cases[i].kind);
        if (cases[i].kind <= PICKLE_INTEGER && cases[i].kind != PICKLE_NONE)
            assert_int_equal(pickle_root(p).as.integer, cases[i].integer);
        if (cases[i].kind == PICKLE_TEXT) assert_true(pickle_text_is(pickle_root(p), "hi"));
        assert_int_equal(pickle_length_bytes(p), whole.count);
    }
}

TEST(test_refusals)
{
    static const struct {
        const char *code;
        size_t bytes;
        const char *expected;
    } cases[] = {
        {LITERAL("cos\nsystem\n(X\x04\x00\x00\x00truetR"), "'os.system'"},
        {LITERAL("cbuiltins\neval\n"), "'builtins.eval'"},
        {LITERAL("c__builtin__\ngetattr\n"), "'__builtin__.getattr'"},
        {LITERAL("ccopy_reg\n_reconstructor\n"), "'copy_reg._reconstructor'"},
        {LITERAL("ctorch\nload\n"), "'torch.load'"},
        {LITERAL("ctorch\nFloatStorage2\n"), "'torch.FloatStorage2'"},
        {LITERAL("ctorch.storage\nFloatStorage\n"), "'torch.storage.FloatStorage'"},
        {LITERAL("ccollections\nOrderedDict.__init__\n"), "OrderedDict.__init__"},
        {LITERAL("ccollections\0x\nOrderedDict\n"), "collections\\x00x"},
        {LITERAL("\x8c\x02os\x8c\x06system\x93"), "'os.system'"},
        {LITERAL("cos\nsystem"), "has no end"},
        {LITERAL("cos"), "has no end"},
        {LITERAL("NN\x93"), "not a text"},
        {LITERAL("ctorch\nFloatStorage\n)R"), "which is a type"},
        {LITERAL("N)R"), "a call of None"},
        {LITERAL("ccollections\nOrderedDict\n]R"), "is a list, expected a tuple"},
        {LITERAL("ccollections\nOrderedDict\nN\x85R"), "has 1 items"},
        {LITERAL("ctorch._utils\n_rebuild_tensor_v2\n)R"), "has 0 items"},
        {LITERAL("ctorch._utils\n_rebuild_parameter\nNNN\x87R"), "a parameter made of None"},
        /* object construction, extension registry, text protocol, persistent text ids, out-of-band buffers */
        {LITERAL("ccollections\nOrderedDict\n)\x81"), "opcode 0x81"},
        {LITERAL("ccollections\nOrderedDict\n)}\x92"), "opcode 0x92"},
        {LITERAL("(ios\nsystem\n"), "opcode 0x69"},
        {LITERAL("(o"), "opcode 0x6f"},
        {LITERAL("\x82\x01"), "opcode 0x82"},
        {LITERAL("I1\n"), "opcode 0x49"},
        {LITERAL("P1\n"), "opcode 0x50"},
        {LITERAL("\x97"), "opcode 0x97"},
        {LITERAL("\x80\x02"), "opcode 0x80"},
        /* stack and memo */
        {LITERAL(""), "operand is missing"},
        {LITERAL("0"), "operand is missing"},
        {LITERAL("2"), "operand is missing"},
        {LITERAL("q\x00"), "operand is missing"},
        {LITERAL("\x85"), "operand is missing"},
        {LITERAL("N(\x85"), "operand is missing"}, /* the operand is below a mark */
        {LITERAL("N(q\x01"), "operand is missing"},
        {LITERAL("]N(a"), "operand is missing"},
        {LITERAL("]a"), "operand is missing"},
        {LITERAL("t"), "mark is missing"},
        {LITERAL("]Ne"), "mark is missing"},
        {LITERAL("u"), "mark is missing"},
        {LITERAL("(Nu"), "operand is missing"},
        {LITERAL("N(NNu"), "items for None, expected a dict"},
        {LITERAL("}(Ne"), "items for a dict, expected a list"},
        {LITERAL("}(NNNu"), "has no value"},
        {LITERAL("N}b"), "attributes for None"},
        {LITERAL("h\x00"), "memo entry 0 was never stored"},
        {LITERAL("Nq\x01h\x00"), "memo entry 0 was never stored"},
        {LITERAL("j\xff\xff\xff\xff"), "memo entry 4294967295 was never stored"},
        {LITERAL("Nr\xff\xff\xff\xff"), "memo entry 4294967295 after 0 stores"},
        {LITERAL("Nr\x00\x00\x01\x00"), "memo entry 65536 after 0 stores"},
        /* lengths */
        {LITERAL("X\xff\xff\xff\xff"), "4294967295 bytes are needed, 1 are left"},
        {LITERAL("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"), "18446744073709551615 bytes are needed"},
        {LITERAL("\x8b\xff\xff\xff\xff"), "4294967295 bytes are needed"},
        {LITERAL("\x8a\xff"), "255 bytes are needed"},
        {LITERAL("G\x00"), "8 bytes are needed"},
        /* persistent ids */
        {LITERAL("NQ"), "a persistent id is None"},
        {LITERAL(")Q"), "a persistent id has 0 items"},
        {LITERAL("(NNNNNtQ"), "does not describe a storage"},
    };
    FREED_BY(buffer_free) buffer code = {0}, whole = {0};
    FOR_ROWS(i, cases) {
        pickle *p;
        deberta_error error;
        code.count = 0;
        put(&code, cases[i].code, cases[i].bytes);
        check_refused(read_code(&p, &code, &whole, &error), &error, DEBERTA_E_FORMAT, cases[i].expected);
        assert_null(p);
    }
}

TEST(test_beginnings)
{
    static const struct {
        const char *bytes;
        size_t count;
        bool good;
    } cases[] = {
        {LITERAL(""), false},           {LITERAL("\x80"), false},       {LITERAL("\x80\x02"), false},
        {LITERAL("\x80\x01N."), false}, {LITERAL("\x80\x06N."), false}, {LITERAL("N."), false},
        {LITERAL("\x80\x02N"), false},  {LITERAL("\x80\x02N."), true},  {LITERAL("\x80\x04N."), true},
        {LITERAL("\x80\x05N.x"), true},
    };
    FOR_ROWS(i, cases) {
        FREED_BY(pickle_free) pickle *p;
        deberta_error error;
        deberta_status status = read_bytes(&p, cases[i].bytes, cases[i].count, &error);
        assert_int_equal(status, cases[i].good ? DEBERTA_OK : DEBERTA_E_FORMAT);
    }
}

/* A list that contains itself, and a dict of dicts of themselves: walking over one level must end. */
TEST(test_cycles)
{
    FREED_BY(pickle_free) pickle *p;
    deberta_error error;
    pickle_value item;
    size_t cursor = 0, items = 0;
    static const char code[] = "\x80\x02]q\x00(h\x00h\x00Ne.";
    assert_ok(read_bytes(&p, LITERAL(code), &error));
    while (pickle_next(p, pickle_root(p), &cursor, &item)) items++;
    assert_int_equal(items, 3);
}

/* Each of these repeats one piece until the code has 8 MB: the pools' limit ends it, or it works in bounded memory. */
TEST(test_endless)
{
    static const struct {
        const char *head, *piece;
        size_t piece_bytes;
        const char *expected; /* NULL: accepted */
    } cases[] = {
        {"N", LITERAL("\x85"), "more than"}, /* nested tuples */
        {"", LITERAL("N"), "more than"},     /* stack */
        {"", LITERAL("("), "more than"},     /* marks */
        {"", LITERAL("]"), "more than"},     /* containers */
        {"]", LITERAL("Na"), "more than"},   /* cells */
        {"N", LITERAL("\x94"), "more than"}, /* memo */
        {"N", LITERAL("N0"), NULL},
        {"Nq\x01"
         "0N",
         LITERAL("h\x01"
                 "0"),
         NULL},
        {"Nq\x01", LITERAL("q\x01"), NULL},
        {"N", LITERAL("\x95\0\0\0\0\0\0\0\0"), NULL},
    };
    FOR_ROWS(c, cases) {
        FREED_BY(buffer_free) buffer code = {0}, whole = {0};
        FREED_BY(pickle_free) pickle *p;
        deberta_error error;
        put_string(&code, cases[c].head);
        for (size_t i = 0; i < 8u << 20; i += cases[c].piece_bytes) put(&code, cases[c].piece, cases[c].piece_bytes);
        deberta_status status = read_code(&p, &code, &whole, &error);
        if (cases[c].expected)
            check_refused(status, &error, DEBERTA_E_FORMAT, cases[c].expected);
        else
            assert_ok(status);
    }
}

/* Many tensors from one memoised argument tuple: a few bytes each. */
TEST(test_too_many_tensors)
{
    FREED_BY(buffer_free) buffer code = {0}, whole = {0};
    pickle *p;
    deberta_error error;
    int64_t one = 1;
    put_tensor(&code, "FloatStorage", "0", 1, 0, &one, &one, 1);
    put_global(&code, "torch._utils", "_rebuild_tensor_v2");
    put_string(&code, "q\x01"
                      "0(");
    put_storage(&code, "FloatStorage", "0", 1);
    put_integer(&code, 0);
    put_tuple(&code, &one, 1);
    put_tuple(&code, &one, 1);
    put_string(&code, "NNtq\x02"
                      "0");
    for (int i = 0; i < 70000; i++) put_string(&code, "h\x01h\x02R0");
    check_refused(read_code(&p, &code, &whole, &error), &error, DEBERTA_E_FORMAT, "more than 65536 tensors");
}

/* A tensor's metadata say that its values are to be negated or conjugated: none, or an empty dict, say nothing. */
TEST(test_metadata)
{
    static const struct {
        const char *code;
        size_t bytes;
        const char *expected; /* NULL: accepted */
    } cases[] = {
        {"", 0, NULL},
        {LITERAL("N"), NULL},
        {LITERAL("}"), NULL},
        {LITERAL("}X\x03\x00\x00\x00neg\x88s"), "save it with .resolve_neg()"},
        {LITERAL("K\x01"), "save it with .resolve_neg()"},
    };
    const int64_t one = 1;
    FOR_ROWS(c, cases) {
        FREED_BY(buffer_free) buffer code = {0}, whole = {0};
        FREED_BY(pickle_free) pickle *p;
        deberta_error error;
        put_global(&code, "torch._utils", "_rebuild_tensor_v2");
        put_string(&code, "(");
        put_storage(&code, "FloatStorage", "0", 1);
        put_integer(&code, 0);
        put_tuple(&code, &one, 1);
        put_tuple(&code, &one, 1);
        put_string(&code, "NN");
        put(&code, cases[c].code, cases[c].bytes);
        put_string(&code, "tR");
        deberta_status status = read_code(&p, &code, &whole, &error);
        if (cases[c].expected)
            check_refused(status, &error, DEBERTA_E_FORMAT, cases[c].expected);
        else
            assert_ok(status);
    }
}

static bool tensor_reads(const char *storage, int64_t elements, int64_t offset, const int64_t *shape,
                         const int64_t *strides, size_t rank, pickle_tensor *read)
{
    FREED_BY(buffer_free) buffer code = {0}, whole = {0};
    FREED_BY(pickle_free) pickle *p;
    deberta_error error;
    put_tensor(&code, storage, "key", elements, offset, shape, strides, rank);
    deberta_status status = read_code(&p, &code, &whole, &error);
    if (status == DEBERTA_OK) {
        assert_int_equal(pickle_root(p).kind, PICKLE_TENSOR);
        *read = *pickle_tensor_of(p, pickle_root(p));
        assert_true(pickle_text_is(pickle_storage_at(p, read->storage)->key, "key"));
    } else {
        assert_int_equal(status, DEBERTA_E_FORMAT);
    }
    return status == DEBERTA_OK;
}

/* Random small geometries: accepted exactly when walking over all elements stays inside the storage, and not larger
 * than it. */
TEST(test_geometry)
{
    uint64_t seed = 1;
    size_t accepted = 0;
    for (int round = 0; round < 4000; round++) {
        int64_t shape[4], strides[4], elements = (int64_t)random_below(&seed, 40),
                                      offset = (int64_t)random_below(&seed, 8);
        size_t rank = random_below(&seed, 5), count = 1;
        int64_t last = offset;
        for (size_t d = 0; d < rank; d++) {
            shape[d] = (int64_t)random_below(&seed, 5);
            strides[d] = (int64_t)random_below(&seed, 9);
            count *= (size_t)shape[d];
            last += (shape[d] - 1) * strides[d];
        }
        bool inside = count == 0 ? offset <= elements : last < elements && count <= (size_t)elements;
        pickle_tensor read = {0};
        bool good = tensor_reads("FloatStorage", elements, offset, shape, strides, rank, &read);
        assert_int_equal(good, inside);
        if (!good) continue;
        accepted++;
        assert_int_equal(read.elements, count);
        assert_int_equal(read.offset, offset);
        for (size_t d = 0; d < rank; d++)
            assert_true(read.shape[d] == (size_t)shape[d] && read.strides[d] == (size_t)strides[d]);
    }
    assert_in_range(accepted, 500, 3500);
}

/* Numbers whose products and sums wrap around. */
TEST(test_overflowing_geometry)
{
    const int64_t big = INT64_MAX, two32 = INT64_C(1) << 32, two31 = INT64_C(1) << 31;
    static const int64_t ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    pickle_tensor read;
    assert_false(tensor_reads("FloatStorage", 8, 0, (int64_t[]){big}, ones, 1, &read));
    assert_false(tensor_reads("FloatStorage", 8, 0, (int64_t[]){two32, two32}, (int64_t[]){0, 0}, 2, &read));
    assert_false(tensor_reads("FloatStorage", 8, 0, (int64_t[]){two32, two32}, (int64_t[]){two32, 1}, 2, &read));
    assert_false(tensor_reads("FloatStorage", 8, 0, (int64_t[]){3}, (int64_t[]){big}, 1, &read));
    assert_false(tensor_reads("FloatStorage", 8, 0, (int64_t[]){2, 2}, (int64_t[]){big, big}, 2, &read));
    assert_false(tensor_reads("FloatStorage", 8, 0, (int64_t[]){2, 2, 2}, (int64_t[]){big, big, 2}, 3, &read));
    assert_false(tensor_reads("FloatStorage", 8, big, ones, ones, 1, &read));
    assert_false(tensor_reads("FloatStorage", 8, -1, ones, ones, 1, &read));
    assert_false(tensor_reads("FloatStorage", -8, 0, ones, ones, 1, &read));
    assert_false(tensor_reads("FloatStorage", 8, 0, (int64_t[]){-1}, ones, 1, &read));
    assert_false(tensor_reads("FloatStorage", 8, 7, (int64_t[]){2}, (int64_t[]){-1}, 1, &read));
    assert_true(tensor_reads("FloatStorage", 8, 0, (int64_t[]){two31, two31, 0}, ones, 3, &read) && read.elements == 0);
    assert_false(tensor_reads("FloatStorage", 1, 0, ones, ones, 9, &read));
    assert_true(tensor_reads("FloatStorage", 1, 0, ones, ones, 8, &read));
    /* Expanded to a terabyte from one element. */
    assert_false(tensor_reads("FloatStorage", 1, 0, (int64_t[]){INT64_C(1) << 38}, (int64_t[]){0}, 1, &read));
    assert_true(tensor_reads("FloatStorage", big, 5, (int64_t[]){2}, (int64_t[]){big - 6}, 1, &read));
    assert_false(tensor_reads("FloatStorage", big, 6, (int64_t[]){2}, (int64_t[]){big - 6}, 1, &read));
}

/* Views of storages, as in the oldest legacy files. */
TEST(test_views)
{
    static const struct {
        int64_t offset, elements;
        bool good;
    } cases[] = {{0, 8, true},  {4, 4, true},   {8, 0, false},
                 {5, 4, false}, {-1, 4, false}, {INT64_MAX, INT64_MAX, false}};
    FOR_ROWS(i, cases) {
        FREED_BY(buffer_free) buffer code = {0}, whole = {0};
        FREED_BY(pickle_free) pickle *p;
        deberta_error error;
        int64_t two = 2, one = 1;
        put_global(&code, "torch._utils", "_rebuild_tensor_v2");
        put_byte(&code, '(');
        put_byte(&code, '(');
        put_text(&code, "storage");
        put_global(&code, "torch", "FloatStorage");
        put_text(&code, "0");
        put_text(&code, "cuda:3");
        put_integer(&code, 8);
        put_byte(&code, '(');
        put_text(&code, "view");
        put_integer(&code, cases[i].offset);
        put_integer(&code, cases[i].elements);
        put_string(&code, "ttQ");
        put_integer(&code, 1);
        put_tuple(&code, &two, 1);
        put_tuple(&code, &one, 1);
        put_string(&code, "\x89}tR");
        deberta_status status = read_code(&p, &code, &whole, &error);
        assert_int_equal(status, cases[i].good ? DEBERTA_OK : DEBERTA_E_FORMAT);
        if (status == DEBERTA_OK) assert_int_equal(pickle_tensor_of(p, pickle_root(p))->offset, cases[i].offset + 1);
    }
}

/* A message about a tensor names it, although the name is only on the stack yet. */
TEST(test_message_names_tensor)
{
    FREED_BY(buffer_free) buffer code = {0}, whole = {0};
    pickle *p;
    deberta_error error;
    int64_t shape = -3, stride = 1;
    put_string(&code, "}(");
    put_text(&code, "encoder.weight");
    put_tensor(&code, "FloatStorage", "0", 3, 0, &shape, &stride, 1);
    put_byte(&code, 'u');
    deberta_status status = read_code(&p, &code, &whole, &error);
    check_refused(status, &error, DEBERTA_E_FORMAT, "at 'encoder.weight': a dimension of a tensor is -3");
}
