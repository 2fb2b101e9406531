package dev.tributary

/** The version of the SDK. */
internal const val VERSION: String = "@project.version@"

/** The base address that is built into this release, or an empty text. */
internal const val HOST: String = "@host@"
