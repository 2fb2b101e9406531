package dev.tributary

import java.io.ByteArrayOutputStream
import java.io.InputStream
import java.net.HttpURLConnection
import java.net.URL

/** A response of any server. */
public class HttpResponse(
    public val status: Int,
    public val text: String,
    /** The headers `Date` and `Retry-After`, or null. */
    public val date: String?,
    public val retryAfter: String?,
)

/** Cancels something. It may have happened already. */
public fun interface Cancel {
    public fun cancel()
}

/** Posts a JSON document on a thread of its own. Calls `onEnd` once, on that thread. */
internal class HttpPost(
    private val url: String,
    private val apiKey: String,
    private val body: String,
    private val onEnd: (Result<HttpResponse>) -> Unit,
) : Cancel {
    @Volatile private var isCancelled = false

    @Volatile private var connection: HttpURLConnection? = null

    fun start(): HttpPost {
        val thread = Thread({ onEnd(runCatching(::send)) }, "tributary-http")
        thread.isDaemon = true
        thread.start()
        return this
    }

    override fun cancel() {
        isCancelled = true
        connection?.disconnect()
    }

    private fun send(): HttpResponse {
        val connection = URL(url).openConnection() as HttpURLConnection
        this.connection = connection
        connection.requestMethod = "POST"
        connection.connectTimeout = TIMEOUT_MS
        connection.readTimeout = TIMEOUT_MS
        connection.instanceFollowRedirects = false
        connection.useCaches = false
        connection.doOutput = true
        connection.setRequestProperty("Authorization", "Bearer $apiKey")
        connection.setRequestProperty("Content-Type", "application/json")
        check(!isCancelled)
        connection.outputStream.use { it.write(body.toByteArray()) }
        val status = connection.responseCode
        val stream = if (status >= HttpURLConnection.HTTP_BAD_REQUEST) connection.errorStream else connection.inputStream
        val text = stream?.use(::read).orEmpty()
        return HttpResponse(status, text, connection.getHeaderField("Date"), connection.getHeaderField("Retry-After"))
    }

    /** Returns the text of a stream. The end of a longer one than the service sends is cut off. */
    private fun read(stream: InputStream): String {
        val bytes = ByteArrayOutputStream()
        val buffer = ByteArray(4096)
        while (bytes.size() < MAX_BYTES) {
            val count = stream.read(buffer)
            if (count < 0) break
            bytes.write(buffer, 0, count)
        }
        return String(bytes.toByteArray(), Charsets.UTF_8)
    }

    internal companion object {
        const val TIMEOUT_MS = 10_000
        private const val MAX_BYTES = 65_536
    }
}
