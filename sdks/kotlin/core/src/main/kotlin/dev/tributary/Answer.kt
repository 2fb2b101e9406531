package dev.tributary

import java.text.ParseException
import java.text.SimpleDateFormat
import java.util.Locale
import java.util.TimeZone

/** What an answer means for the request. */
internal sealed class Answer {
    /** How [DebugState] names the meaning. */
    abstract val outcome: String

    /** The HTTP status, or null if no response came. */
    abstract val status: Int?

    /** The code of the problem, if the body has one. */
    abstract val code: String?

    /** The service took the request, or refused it for good. */
    class Verdict(
        val isSuccess: Boolean,
        override val status: Int,
        /** The attribution or the problem document of the service. `attributionId` is null if there is no attribution. */
        private val body: Map<*, *>,
        private val clockErrorMs: Long,
    ) : Answer() {
        val isAttributed get() = isSuccess && body["attributionId"] is String
        val affiliateId get() = body["affiliateId"] as? String
        val isUnknownCode get() = body["touch"] == "unknown"
        override val code get() = body["code"] as? String
        override val outcome get() = if (isSuccess) "accepted" else "refused"

        /** Whether the service refused the request because of this field: the 400 names it. */
        fun isRefused(field: String): Boolean {
            val errors = body["errors"] as? List<*> ?: return false
            return status == 400 && errors.any { (it as? Map<*, *>)?.get("path") == field }
        }

        /** Returns by how much the device's clock is behind the service, ms, if that may be why the field was refused. Otherwise 0. */
        fun clockErrorOf(field: String): Long = if (isRefused(field)) clockErrorMs else 0

        override fun toString(): String = "${if (isSuccess) "ok" else "refused"} ${Json.write(body)}"
    }

    /** The service says that the key or the path is wrong: nothing can be delivered. */
    class Misconfigured(override val status: Int, override val code: String) : Answer() {
        override val outcome get() = "stopped"

        override fun toString(): String = "misconfigured $status"
    }

    /** No answer of the service. `afterMs` is what `Retry-After` says, else 0. */
    class Failed(val reason: Any?, val afterMs: Long = 0, override val code: String? = null) : Answer() {
        override val outcome get() = "failed"
        override val status get() = reason as? Int

        /** Whether the status may mean that the host is wrong. */
        val isStrange get() = reason in STRANGE

        override fun toString(): String = "failed $reason"
    }

    companion object {
        private const val CLOCK_TOLERANCE_MS = 60_000L
        private val STRANGE = setOf(401, 403, 404)
        private val FINAL = setOf(400, 409, 413, 422)
        private val UNATTRIBUTED = setOf("no_attributable_click", "no_attribution")
        private val BAD_SIGNATURE = setOf("signature_required", "invalid_signature")
        private val DIGITS = Regex("[0-9]+")

        /** Returns the meaning of a response that came at this time. */
        fun of(response: HttpResponse, now: Long): Answer {
            val status = response.status
            val body = parse(response.text)
            val code = body["code"]
            val date = instant(response.date) ?: now
            val error = date - now
            val clockErrorMs = if (status == 400 && Math.abs(error) > CLOCK_TOLERANCE_MS) error else 0
            val id = body["attributionId"]
            val isSuccess = status == 200 && "attributionId" in body && (id == null || id is String)
            val isFinal = status in FINAL ||
                (status == 404 && code in UNATTRIBUTED) ||
                ((status == 401 || status == 403) && code in BAD_SIGNATURE)
            return when {
                isSuccess || isFinal -> Verdict(isSuccess, status, body, clockErrorMs)
                // Only the service's own answers have a code. A proxy in front of it answers the same while the service is away.
                status in STRANGE && code is String && code.isNotEmpty() -> Misconfigured(status, code)
                else -> Failed(status, retryAfter(response.retryAfter, date), code as? String)
            }
        }

        private fun parse(text: String): Map<*, *> = try {
            Json.parse(text) as? Map<*, *> ?: emptyMap<String, Any?>()
        } catch (_: IllegalArgumentException) {
            emptyMap<String, Any?>()
        }

        /** Returns the delay that `Retry-After` asks for in seconds or as a date, ms. `now` is the time of the answer. */
        private fun retryAfter(value: String?, now: Long): Long {
            val ms = when {
                value == null -> 0
                DIGITS.matches(value) -> (value.toDouble() * 1000).toLong()
                else -> (instant(value) ?: now) - now
            }
            return ms.coerceIn(0, State.DAY_MS)
        }

        /** Returns the instant of an HTTP date, epoch ms, or null if it is none. */
        private fun instant(text: String?): Long? {
            val format = SimpleDateFormat("EEE, dd MMM yyyy HH:mm:ss zzz", Locale.US)
            format.timeZone = TimeZone.getTimeZone("GMT")
            return try {
                text?.let(format::parse)?.time
            } catch (_: ParseException) {
                null
            }
        }
    }
}
