/* Settings files of known wrappers are looked for, and the base model that they name goes into the refusal.
 *
 * SPDX-License-Identifier: MIT */
#include "core/model/wrapper.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/base/path.h"
#include "core/io/json_file.h"

static const json_limits settings_limits = {.bytes = 16 << 20, .depth = 32, .values = 1 << 20};

/* `what`: the class that wrote the file. */
static deberta_status refuse_around(const json_t *settings, const char *key, const char *where, const char *what,
                                    deberta_error *err)
{
    const json_t *inner = json_object_get(settings, key);
    DEBERTA_FAIL(
        err, DEBERTA_E_UNSUPPORTED,
        "%s: belongs to %s around another model (%s is %s): put the config.json of that model into the folder, with "
        "vocab_size as the word table has rows",
        where, what, key, inner ? json_describe(inner).text : "missing");
}

deberta_status wrapper_check_folder(const char *folder, deberta_error *err)
{
    json_t *settings = NULL;
    char *config = path_join(folder, "config.json"), *gliner = path_join(folder, "gliner_config.json");
    deberta_status status = DEBERTA_OK;
    if (!config || !gliner) status = DEBERTA_E_MEMORY;
    bool wrapped = status == DEBERTA_OK && access(config, F_OK) != 0 && access(gliner, F_OK) == 0;
    if (wrapped) status = json_file_read(&settings, gliner, &settings_limits, err);
    if (settings) status = refuse_around(settings, "model_name", QUOTE(gliner), "GLiNER, a class", err);
    json_decref(settings);
    free(config);
    free(gliner);
    if (status == DEBERTA_E_MEMORY) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for a path", QUOTE(folder));
    return status;
}

deberta_status wrapper_check_config(const json_t *config, const char *where, deberta_error *err)
{
    if (!json_is_string(json_object_get(config, "base_model")) || json_object_get(config, "hidden_size"))
        return DEBERTA_OK;
    return refuse_around(config, "base_model", where, "a class", err);
}
