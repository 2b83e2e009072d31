/* `deberta completion` writes a script for the shell from the same tables that the parser uses.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "program/frame/text_output.h"

/* Returns the words that an option takes, separated by blanks; NULL: it takes any value. */
static const char *choices_of(const option *option)
{
    static char words[512];
    size_t used = 0;
    for (size_t k = 0; option->choices && option->choices[k] && used < sizeof words; k++)
        used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", k ? " " : "", option->choices[k]);
    return used ? words : NULL;
}

/* Called for commands of one word and, right before the command they belong to, for those of two. */
typedef void (*command_visit)(FILE *out, const command *command);

static void each_command(FILE *out, const command *const *commands, command_visit visit)
{
    for (size_t k = 0; commands[k]; k++) {
        for (const command *const *sub = commands[k]->subcommands; sub && *sub; sub++) visit(out, *sub);
        visit(out, commands[k]);
    }
}

/* Returns true if the command runs on its own, like `bench MODEL`, or only through its subcommands. */
static bool runs_alone(const command *command) { return command->options || command->groups; }

static void put_words(FILE *out, const command *command)
{
    if (!runs_alone(command)) fprintf(out, "list ");
    for (const struct command *const *sub = command->subcommands; *sub; sub++)
        fprintf(out, "%s%s", command_word(*sub), sub[1] ? " " : "");
}

typedef void (*option_visit)(FILE *out, const command *command, const option *option);

typedef struct option_walk {
    FILE *out;
    const command *command;
    option_visit visit;
} option_walk;

/* Visits the rows of a group, except those that an option of the command itself hides. */
static void walk_group(void *context, const option_group *group)
{
    const option_walk *walk = context;
    for (const option *row = group->options; row->name; row++)
        if (options_find(walk->command, row->name) == row) walk->visit(walk->out, walk->command, row);
}

static void each_option(FILE *out, const command *command, option_visit visit)
{
    option_walk walk = {out, command, visit};
    options_visit(command, walk_group, &walk);
}

static void put_name(FILE *out, const command *command, const option *option)
{
    (void)command;
    fprintf(out, " --%s", option->name);
    if (option->letter) fprintf(out, " -%c", option->letter);
}

static void print_commands(FILE *out, const command *const *commands)
{
    for (size_t k = 0; commands[k]; k++) fprintf(out, "%s%s", k ? " " : "", commands[k]->name);
}

static void put_bash_values(FILE *out, const command *command, const option *option)
{
    const char *words = choices_of(option);
    (void)command;
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
    fprintf(out,
            "    %s) if [ \"$COMP_CWORD\" = 2 ] && [ \"${word#-}\" = \"$word\" ]; then COMPREPLY=($(compgen %s-W '",
            command->name, runs_alone(command) ? "-f " : "");
    put_words(out, command);
    fprintf(out, "' -- \"$word\")); return; fi ;;\n");
}

static void print_bash(FILE *out, const command *const *commands)
{
    fprintf(
        out,
        "# deberta completion bash: source it, or put it into ~/.local/share/bash-completion/completions/deberta\n"
        "_deberta()\n{\n    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options= values=\n"
        "    COMPREPLY=()\n    if [ \"$COMP_CWORD\" = 1 ]; then\n        COMPREPLY=($(compgen -W '");
    print_commands(out, commands);
    fprintf(out, " --help --version' -- \"$word\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n");
    each_command(out, commands, put_bash_words);
    fprintf(out, "    esac\n    case \"${COMP_WORDS[1]} ${COMP_WORDS[2]} \" in\n");
    each_command(out, commands, put_bash_options);
    fprintf(out,
            "    esac\n    if [ \"$values\" ]; then COMPREPLY=($(compgen -W \"$values\" -- \"$word\")); return; fi\n"
            "    case $word in\n    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
            "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n    esac\n}\n"
            "complete -o filenames -F _deberta deberta\n");
}

/* Writes a text inside single quotes, and escapes the few characters that would end it or that zsh interprets. */
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

static void put_zsh_option(FILE *out, const command *command, const option *option)
{
    const char *words = choices_of(option);
    (void)command;
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
    if (strchr(command->name, ' ')) return; /* subcommands are written with the command they belong to */
    fprintf(out, "    %s) ", command->name);
    if (!command->subcommands) {
        put_zsh_arguments(out, command);
        fprintf(out, " ;;\n");
        return;
    }
    fprintf(out, "\n        if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n            compadd ");
    put_words(out, command);
    fprintf(out,
            "%s\n            return\n        fi\n        name=$words[2]\n        shift words\n        (( CURRENT-- ))\n"
            "        case $name in\n",
            runs_alone(command) ? "\n            _files" : "");
    for (const struct command *const *sub = command->subcommands; *sub; sub++) {
        fprintf(out, "        %s) ", command_word(*sub));
        put_zsh_arguments(out, *sub);
        fprintf(out, " ;;\n");
    }
    fprintf(out, "        *) ");
    put_zsh_arguments(out, command);
    fprintf(out, " ;;\n        esac ;;\n");
}

static void print_zsh(FILE *out, const command *const *commands)
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
    each_command(out, commands, put_zsh_command);
    fprintf(out, "    esac\n}\n"
                 "if [ \"$funcstack[1]\" = _deberta ]; then _deberta \"$@\"; else compdef _deberta deberta; fi\n");
}

/** Writes ` -d 'TEXT'` at the end of a line, with the two escapes that fish knows inside single quotes. */
static void put_fish_description(FILE *out, const char *text)
{
    fputs(" -d '", out);
    for (const char *c = text; *c; c++) {
        if (*c == '\'' || *c == '\\') fputc('\\', out);
        fputc(*c, out);
    }
    fputs("'\n", out);
}

static void put_fish_option(FILE *out, const command *command, const option *option)
{
    const char *words = choices_of(option);
    fprintf(out, "complete -c deberta -n '");
    if (strchr(command->name, ' '))
        fprintf(out, "__fish_seen_subcommand_from %.*s; and ", (int)strcspn(command->name, " "), command->name);
    fprintf(out, "__fish_seen_subcommand_from %s", command_word(command));
    if (command->subcommands) {
        fprintf(out, "; and not __fish_seen_subcommand_from ");
        put_words(out, command);
    }
    fprintf(out, "' -l %s", option->name);
    if (option->letter) fprintf(out, " -s %c", option->letter);
    if (option->value) fputs(words ? " -x" : " -r", out);
    if (words) fprintf(out, " -a '%s'", words);
    put_fish_description(out, option->help);
}

static void put_fish_options(FILE *out, const command *command)
{
    if (strchr(command->name, ' ')) {
        fprintf(out, "complete -c deberta -f -n '__fish_seen_subcommand_from %.*s' -a %s",
                (int)strcspn(command->name, " "), command->name, command_word(command));
        put_fish_description(out, command->summary);
    }
    each_option(out, command, put_fish_option);
}

static void print_fish(FILE *out, const command *const *commands)
{
    fprintf(out, "# deberta completion fish: put it into ~/.config/fish/completions/deberta.fish\n");
    for (size_t k = 0; commands[k]; k++) {
        fprintf(out, "complete -c deberta -f -n __fish_use_subcommand -a %s", commands[k]->name);
        put_fish_description(out, commands[k]->summary);
    }
    each_command(out, commands, put_fish_options);
}

static int completion_run(const common_options *options)
{
    static const struct {
        const char *name;
        void (*print)(FILE *out, const command *const *commands);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    const char *shell = options->arguments[0];
    for (size_t k = 0; k < sizeof shells / sizeof *shells; k++) {
        if (strcmp(shell, shells[k].name) != 0) continue;
        text_output output;
        text_output_open(options, options_out(options), &output);
        shells[k].print(output.file, options->commands);
        text_output_close(options, &output);
        return EXIT_OK;
    }
    usage_wrong(options, "expected %s, found '%s'", options->command->arguments, shell);
}

const command command_completion = {
    .name = "completion",
    .summary = "a completion script for a shell",
    .arguments = "bash|zsh|fish",
    .example =
        "  source <(deberta completion bash)\n"
        "  mkdir -p ~/.zfunc && deberta completion zsh > ~/.zfunc/_deberta\n"
        "  mkdir -p ~/.config/fish/completions && deberta completion fish > ~/.config/fish/completions/deberta.fish\n",
    .run = completion_run,
    .without = WITHOUT_MODEL " " WITHOUT_CHANCE " json quiet",
};
