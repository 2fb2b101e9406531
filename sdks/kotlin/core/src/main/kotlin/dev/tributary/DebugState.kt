package dev.tributary

/**
 * What the SDK knows, for a developer who looks for the reason why something is not attributed. SPEC.md defines the fields. There is
 * no personal data in it. Its text is JSON.
 */
public class DebugState internal constructor(
    /** The name and version of the SDK. */
    public val sdk: String,
    /** The base address, with `#test` if the key is a test key. */
    public val host: String,
    /** `granted`, `undecided` or `refused`. */
    public val consent: String,
    /** The first eight characters of the device id, or null without a consent. */
    public val deviceId: String?,
    /** False if the storage failed: the state is in memory only. */
    public val isStored: Boolean,
    /** `attributed` with an affiliate; without one, `unknown` while something is queued, otherwise `none`. */
    public val attribution: String,
    /** Whether a user was identified. */
    public val hasUser: Boolean,
    /** What is to be sent, in the order of sending. */
    public val queued: List<Queued>,
    /** The last ten answers of this process, the oldest first. */
    public val answers: List<Answered>,
    /** When what is queued is tried again, or null if nothing is planned or a request is under way. */
    public val nextTryInSeconds: Long?,
) {
    /** A request to be sent. `kind` is `token`, `code`, `deferred` or `user`. */
    public class Queued internal constructor(
        public val kind: String,
        /** How long it has waited; null for `deferred`. */
        public val ageSeconds: Long?,
    )

    /** An answer to a request. `kind` is that of the request. */
    public class Answered internal constructor(
        public val kind: String,
        /** `accepted`, `refused`, `stopped` or `failed`. */
        public val outcome: String,
        /** The HTTP status, or null if no response came. */
        public val status: Int?,
        /** The code of the error, or null. */
        public val code: String?,
    )

    /** Returns the fields by their names. Lists contain maps. */
    public fun toMap(): Map<String, Any?> = mapOf(
        "sdk" to sdk,
        "host" to host,
        "consent" to consent,
        "deviceId" to deviceId,
        "isStored" to isStored,
        "attribution" to attribution,
        "hasUser" to hasUser,
        "queued" to queued.map { mapOf("kind" to it.kind, "ageSeconds" to it.ageSeconds) },
        "answers" to answers.map {
            mapOf("kind" to it.kind, "outcome" to it.outcome, "status" to it.status, "code" to it.code)
        },
        "nextTryInSeconds" to nextTryInSeconds,
    )

    override fun toString(): String = Json.write(toMap())
}

/** Receives the debug state, on the main thread where there is one; null before the start. */
public fun interface DebugCallback {
    public fun onState(state: DebugState?)
}
