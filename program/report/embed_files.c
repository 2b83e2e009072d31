/* Writes files into an array of a C file: embed_files OUTPUT.c NAME FILE...
 *
 * The files follow each other; NAME ends with a NUL that NAME_bytes does not count. SPDX-License-Identifier: MIT */
#include <stdio.h>

static int embed_files_append(FILE *out, const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in) return perror(path), 1;
    int column = 0;
    for (int byte; (byte = getc(in)) != EOF;) fprintf(out, "%d,%s", byte, ++column % 24 ? "" : "\n");
    fputc('\n', out);
    const int failed = ferror(in);
    if (failed) fprintf(stderr, "%s: cannot be read\n", path);
    fclose(in);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc < 4) return fputs("usage: embed_files OUTPUT.c NAME FILE...\n", stderr), 2;
    FILE *out = fopen(argv[1], "w");
    if (!out) return perror(argv[1]), 1;
    const char *name = argv[2];
    fprintf(out, "#include <stddef.h>\nextern const unsigned char %s[];\nextern const size_t %s_bytes;\n", name, name);
    fprintf(out, "const unsigned char %s[] = {\n", name);
    int failed = 0;
    for (int k = 3; k < argc; k++) failed |= embed_files_append(out, argv[k]);
    fprintf(out, "0};\nconst size_t %s_bytes = sizeof %s - 1;\n", name, name);
    const int dropped = ferror(out);
    if (fclose(out) != 0 || dropped) failed = 1, perror(argv[1]);
    return failed;
}
