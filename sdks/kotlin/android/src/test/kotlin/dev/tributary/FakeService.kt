package dev.tributary

import com.sun.net.httpserver.HttpServer
import org.junit.Assert.assertTrue
import org.robolectric.shadows.ShadowLooper
import java.net.InetSocketAddress
import java.util.concurrent.LinkedBlockingQueue

/** A service that attributes everything to one affiliate. */
class FakeService : AutoCloseable {
    private val server = HttpServer.create(InetSocketAddress("127.0.0.1", 0), 0)

    /** The bodies of the requests. */
    val bodies = LinkedBlockingQueue<String>()
    val url = "http://127.0.0.1:${server.address.port}"

    init {
        server.createContext("/sdk/") { exchange ->
            bodies.put(exchange.requestBody.reader().readText())
            val bytes = """{"attributionId":"att_1","affiliateId":"aff_1"}""".toByteArray()
            exchange.sendResponseHeaders(200, bytes.size.toLong())
            exchange.responseBody.use { it.write(bytes) }
        }
        server.start()
    }

    override fun close() = server.stop(0)
}

/** Runs the main thread until the condition holds. */
fun awaitOnMainThread(what: String, condition: () -> Boolean) {
    val endAt = System.nanoTime() + 10_000_000_000
    while (!condition()) {
        assertTrue("$what did not happen", System.nanoTime() < endAt)
        ShadowLooper.idleMainLooper()
        Thread.sleep(1)
    }
}
