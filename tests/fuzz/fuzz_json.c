/* config.json, and with it the guard in front of jansson.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/fuzz/fuzz.h"

#include "core/model/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    model_config config;
    deberta_error error;
    if (config_parse(&config, (const char *)data, size, "config.json", &error) == DEBERTA_OK) {
        /* What the rest of the program relies on. */
        if (config.heads * config.head_size != config.hidden_size || config.layers == 0 || config.relative_span == 0)
            __builtin_trap();
        config_free(&config);
    }
    return 0;
}
