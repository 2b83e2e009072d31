/* `deberta completion`: a script for the shell, made from the same tables as the parser, so that it cannot be out of
 * date. SPDX-License-Identifier: MIT */
#include <string.h>

#include "cli/commands.h"
#if HAVE_VIZ
#include "cli/figures/figure_kinds.h"
#endif
#include "command/run.h"

/* What to offer behind an option: the words of a fixed choice, or files. What is for one command comes before what is
 * for all. */
static char figure_words[512];
static const struct {
    const char *command, *option, *words; /* command NULL: any */
} choices[] = {
    {"verify", "format", "table md csv json latex"},
    {"eval", "format", "table md csv json latex"},
    {"bench", "attention", "full c2c c2c+c2p c2c+p2c"},
    {"encode", "attention", "all"},
    {"encode", "pool", "mean cls none"},
    {"attention", "figure", figure_words},
    {NULL, "isa", "auto scalar avx2 avx512 neon"},
    {NULL, "reference", "microsoft hf"},
    {NULL, "progress", "auto never"},
    {NULL, "format", "table md csv json"},
    {NULL, "hidden", "last all"},
    {NULL, "position-cache", "on off both"},
    {NULL, "center", "row none"},
    {NULL, "mlm-decoder", "emd plain"},
    {NULL, "grouping", "first simple none"},
};

static const char *choices_of(const command *command, const char *option)
{
    for (size_t k = 0; k < sizeof choices / sizeof *choices; k++)
        if (strcmp(choices[k].option, option) == 0 &&
            (!choices[k].command || strcmp(choices[k].command, command->name) == 0))
            return choices[k].words;
    return NULL;
}

static void list_figures(void)
{
#if HAVE_VIZ
    for (size_t k = 0, used = 0; figure_kinds[k] && used < sizeof figure_words; k++)
        used += (size_t)snprintf(figure_words + used, sizeof figure_words - used, "%s ", figure_kinds[k]->name);
    strncat(figure_words, "list", sizeof figure_words - strlen(figure_words) - 1);
#endif
}

/* Commands of one word and, right before the command they belong to, those of two. */
typedef void (*command_visit)(FILE *out, const command *command);

static void each_command(FILE *out, command_visit visit)
{
    for (size_t k = 0; commands[k]; k++) {
        for (const command *const *sub = commands[k]->subcommands; sub && *sub; sub++) visit(out, *sub);
        visit(out, commands[k]);
    }
}

static void put_words(FILE *out, const command *command)
{
    fprintf(out, "list");
    for (const struct command *const *sub = command->subcommands; *sub; sub++) fprintf(out, " %s", command_word(*sub));
}

typedef void (*option_visit)(FILE *out, const command *command, const option_spec *option);

/* Calls visit for the command's options and those common ones that it does not hide. */
static void each_option(FILE *out, const command *command, option_visit visit)
{
    for (const option_spec *option = command->options; option && option->name; option++) visit(out, command, option);
    for (const option_spec *option = common_options; option->name; option++) {
        const option_spec *own = command->options;
        while (own && own->name && strcmp(own->name, option->name) != 0) own++;
        if (!own || !own->name) visit(out, command, option);
    }
}

static void put_name(FILE *out, const command *command, const option_spec *option)
{
    (void)command;
    fprintf(out, " --%s", option->name);
    if (option->letter) fprintf(out, " -%c", option->letter);
}

static void print_commands(FILE *out)
{
    for (size_t k = 0; commands[k]; k++) fprintf(out, "%s%s", k ? " " : "", commands[k]->name);
}

static void put_bash_values(FILE *out, const command *command, const option_spec *option)
{
    const char *words = option->value ? choices_of(command, option->name) : NULL;
    if (words) fprintf(out, " --%s) values='%s' ;;", option->name, words);
}

static void put_bash_options(FILE *out, const command *command)
{
    fprintf(out, "    '%s '*) options='", command->name);
    each_option(out, command, put_name);
    fprintf(out, "'\n        case $before in");
    each_option(out, command, put_bash_values);
    fprintf(out, " esac ;;\n");
}

static void put_bash_words(FILE *out, const command *command)
{
    if (!command->subcommands) return;
    fprintf(out, "    %s) if [ \"$COMP_CWORD\" = 2 ]; then COMPREPLY=($(compgen -W '", command->name);
    put_words(out, command);
    fprintf(out, " --help' -- \"$word\")); return; fi ;;\n");
}

static void print_bash(FILE *out)
{
    fprintf(
        out,
        "# deberta completion bash: source it, or put it into ~/.local/share/bash-completion/completions/deberta\n"
        "_deberta()\n{\n    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options= values=\n"
        "    COMPREPLY=()\n    if [ \"$COMP_CWORD\" = 1 ]; then\n        COMPREPLY=($(compgen -W '");
    print_commands(out);
    fprintf(out, " --help --version' -- \"$word\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n");
    each_command(out, put_bash_words);
    fprintf(out, "    esac\n    case \"${COMP_WORDS[1]} ${COMP_WORDS[2]} \" in\n");
    each_command(out, put_bash_options);
    fprintf(out,
            "    esac\n    if [ \"$values\" ]; then COMPREPLY=($(compgen -W \"$values\" -- \"$word\")); return; fi\n"
            "    case $word in\n    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
            "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n    esac\n}\n"
            "complete -o filenames -F _deberta deberta\n");
}

/* Texts of ours inside single quotes; the few signs that would end them or that zsh reads as its own are escaped. */
static void put_escaped(FILE *out, const char *text, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs("'\\''", out);
            continue;
        }
        if (strchr(special, *text)) fputc('\\', out);
        fputc(*text, out);
    }
}

static void put_zsh_option(FILE *out, const command *command, const option_spec *option)
{
    const char *words = choices_of(command, option->name);
    if (option->letter)
        fprintf(out, "        '*'{-%c,--%s}'[", option->letter, option->name);
    else
        fprintf(out, "        '*--%s[", option->name);
    put_escaped(out, option->help, "[]:\\");
    fputc(']', out);
    if (option->value && words)
        fprintf(out, ":%s:(%s)", option->value, words);
    else if (option->value)
        fprintf(out, ":%s:_files", option->value);
    fprintf(out, "' \\\n");
}

static void put_zsh_arguments(FILE *out, const command *command)
{
    fprintf(out, "_arguments \\\n");
    each_option(out, command, put_zsh_option);
    fprintf(out, "        '*:file:_files'");
}

static void put_zsh_command(FILE *out, const command *command)
{
    if (strchr(command->name, ' ')) return; /* with the command it belongs to */
    fprintf(out, "    %s) ", command->name);
    if (!command->subcommands) {
        put_zsh_arguments(out, command);
        fprintf(out, " ;;\n");
        return;
    }
    fprintf(out, "\n        if (( CURRENT == 2 )); then\n            compadd ");
    put_words(out, command);
    fprintf(out,
            "\n            return\n        fi\n        name=$words[2]\n        shift words\n        (( CURRENT-- ))\n"
            "        case $name in\n");
    for (const struct command *const *sub = command->subcommands; *sub; sub++) {
        fprintf(out, "        %s) ", command_word(*sub));
        put_zsh_arguments(out, *sub);
        fprintf(out, " ;;\n");
    }
    fprintf(out, "        esac ;;\n");
}

static void print_zsh(FILE *out)
{
    fprintf(out,
            "#compdef deberta\n# deberta completion zsh: put it into a folder of $fpath as _deberta\n_deberta() {\n"
            "    local -a commands\n    commands=(\n");
    for (size_t k = 0; commands[k]; k++) {
        fprintf(out, "        '%s:", commands[k]->name);
        put_escaped(out, commands[k]->summary, ":\\");
        fprintf(out, "'\n");
    }
    fprintf(out, "    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n        return\n    fi\n"
                 "    local name=$words[2]\n    shift words\n    (( CURRENT-- ))\n    case $name in\n");
    each_command(out, put_zsh_command);
    fprintf(out, "    esac\n}\n"
                 "if [ \"$funcstack[1]\" = _deberta ]; then _deberta \"$@\"; else compdef _deberta deberta; fi\n");
}

static void put_fish_option(FILE *out, const command *command, const option_spec *option)
{
    const char *words = choices_of(command, option->name);
    fprintf(out, "complete -c deberta -n '");
    if (strchr(command->name, ' '))
        fprintf(out, "__fish_seen_subcommand_from %.*s; and ", (int)strcspn(command->name, " "), command->name);
    fprintf(out, "__fish_seen_subcommand_from %s' -l %s", command_word(command), option->name);
    if (option->letter) fprintf(out, " -s %c", option->letter);
    if (option->value) fputs(words ? " -x" : " -r", out);
    if (words) fprintf(out, " -a '%s'", words);
    fputs(" -d '", out);
    for (const char *c = option->help; *c; c++) {
        if (*c == '\'' || *c == '\\') fputc('\\', out);
        fputc(*c, out);
    }
    fputs("'\n", out);
}

static void put_fish_options(FILE *out, const command *command)
{
    if (strchr(command->name, ' '))
        fprintf(out, "complete -c deberta -f -n '__fish_seen_subcommand_from %.*s' -a %s -d '%s'\n",
                (int)strcspn(command->name, " "), command->name, command_word(command), command->summary);
    each_option(out, command, put_fish_option);
}

static void print_fish(FILE *out)
{
    fprintf(out, "# deberta completion fish: put it into ~/.config/fish/completions/deberta.fish\n");
    for (size_t k = 0; commands[k]; k++)
        fprintf(out, "complete -c deberta -f -n __fish_use_subcommand -a %s -d '%s'\n", commands[k]->name,
                commands[k]->summary);
    each_command(out, put_fish_options);
}

static int run(const parsed_options *options)
{
    static const struct {
        const char *name;
        void (*print)(FILE *out);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    const char *shell = options_argument(options, 0);
    for (size_t k = 0; k < sizeof shells / sizeof *shells; k++) {
        if (strcmp(shell, shells[k].name) != 0) continue;
        text_output output;
        const int status = text_output_open(options, options_value(options, "out", NULL), &output);
        if (status != EXIT_OK) return status;
        list_figures();
        shells[k].print(output.file);
        return text_output_close(options, &output);
    }
    return report_usage(options, "expected bash, zsh or fish, found '%s'", shell);
}

const command command_completion = {
    .name = "completion",
    .summary = "a completion script for a shell",
    .arguments = "bash|zsh|fish",
    .min_arguments = 1,
    .max_arguments = 1,
    .options = NULL,
    .example = "  source <(deberta completion bash)\n"
               "  deberta completion zsh > ~/.zfunc/_deberta\n"
               "  deberta completion fish > ~/.config/fish/completions/deberta.fish\n",
    .run = run,
};
