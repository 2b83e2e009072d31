/* The only C++ of the project: libsentencepiece behind a C interface.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/sentencepiece_shim.h"

#include <cstdio>
#include <exception>
#include <new>

#include <sentencepiece_processor.h>

struct sentencepiece_engine {
    sentencepiece::SentencePieceProcessor processor;
};

struct sentencepiece_pieces {
    sentencepiece::ImmutableSentencePieceText text;
};

/* Runs `body`, which returns a status of the library, and turns whatever happens into an outcome. */
template <typename Body> static sentencepiece_outcome guarded(char *message, size_t message_bytes, Body body) noexcept
{
    try {
        const sentencepiece::util::Status status = body();
        if (status.ok()) return SENTENCEPIECE_OK;
        std::snprintf(message, message_bytes, "%s", status.error_message());
        return SENTENCEPIECE_REFUSED;
    } catch (const std::bad_alloc &) {
        return SENTENCEPIECE_NO_MEMORY;
    } catch (const std::exception &exception) {
        std::snprintf(message, message_bytes, "%s", exception.what());
    } catch (...) {
        std::snprintf(message, message_bytes, "an unknown exception");
    }
    return SENTENCEPIECE_REFUSED;
}

sentencepiece_outcome sentencepiece_load(sentencepiece_engine **engine, const char *model, size_t bytes, char *message,
                                         size_t message_bytes)
{
    *engine = new (std::nothrow) sentencepiece_engine;
    if (!*engine) return SENTENCEPIECE_NO_MEMORY;
    const sentencepiece_outcome outcome = guarded(message, message_bytes, [&] {
        return (*engine)->processor.LoadFromSerializedProto({model, bytes});
    });
    if (outcome != SENTENCEPIECE_OK) {
        delete *engine;
        *engine = nullptr;
    }
    return outcome;
}

void sentencepiece_free(sentencepiece_engine *engine) { delete engine; }

sentencepiece_outcome sentencepiece_encode(const sentencepiece_engine *engine, sentencepiece_pieces **pieces,
                                           const char *text, size_t bytes, size_t *count, char *message,
                                           size_t message_bytes)
{
    return guarded(message, message_bytes, [&] {
        if (!*pieces) *pieces = new sentencepiece_pieces;
        /* The object keeps its memory from text to text: that halves the time. */
        auto status = engine->processor.Encode({text, bytes}, (*pieces)->text.mutable_proto());
        *count = status.ok() ? (*pieces)->text.pieces_size() : 0;
        return status;
    });
}

int32_t sentencepiece_piece(const sentencepiece_pieces *pieces, size_t index, size_t *bytes)
{
    const auto piece = pieces->text.pieces(static_cast<int>(index));
    *bytes = piece.piece().size();
    return static_cast<int32_t>(piece.id());
}

void sentencepiece_pieces_free(sentencepiece_pieces *pieces) { delete pieces; }
