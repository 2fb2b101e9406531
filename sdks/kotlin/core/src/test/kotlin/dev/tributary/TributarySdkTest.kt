package dev.tributary

import com.sun.net.httpserver.HttpServer
import org.junit.After
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Before
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder
import java.io.File
import java.io.IOException
import java.net.InetAddress
import java.net.InetSocketAddress
import java.net.ServerSocket
import java.util.concurrent.CompletableFuture
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit

class TributarySdkTest {
    @get:Rule
    val folder = TemporaryFolder()
    private val server = HttpServer.create(InetSocketAddress("127.0.0.1", 0), 0)
    private val bodies = LinkedBlockingQueue<Map<*, *>>()

    /** The bodies of the first answers, with the status 400. */
    private val refusals = LinkedBlockingQueue<String>()

    @Volatile private var answer = """{"attributionId":"att_1","affiliateId":"aff_1","touch":"won"}"""

    @Before
    fun begin() {
        server.createContext("/sdk/") { exchange ->
            bodies.put(Json.parse(exchange.requestBody.reader().readText()) as Map<*, *>)
            val refusal = refusals.poll()
            val bytes = (refusal ?: answer).toByteArray()
            exchange.sendResponseHeaders(if (refusal == null) 200 else 400, bytes.size.toLong())
            exchange.responseBody.use { it.write(bytes) }
        }
        server.start()
    }

    @After
    fun end() = server.stop(0)

    private fun start(
        options: TributaryOptions = TributaryOptions(),
        referrer: ReferrerSource? = null,
        platform: Platform = Platform(),
    ): TributarySdk {
        val url = "http://127.0.0.1:${server.address.port}/"
        val environment = Environment(FileStorage(File(folder.root, "state.json")), "pk_live_test", url, referrer = referrer)
        return TributarySdk(platform).also { assertTrue(it.start(null, options, environment)) }
    }

    private fun <T> CompletableFuture<T>.result(): T = get(10, TimeUnit.SECONDS)

    private fun TributarySdk.identified(userId: String): Boolean =
        CompletableFuture<Boolean>().also { future -> identify(userId) { future.complete(it) } }.result()

    private fun TributarySdk.applied(code: String): Boolean =
        CompletableFuture<Boolean>().also { future -> applyCode(code) { future.complete(it) } }.result()

    @Test
    fun `the version of a request is that of the release`() {
        start().applied("SPRING")
        assertEquals("jvm/${File(System.getProperty("sdks"), "VERSION").readText().trim()}", bodies.take()["sdk"])
    }

    @Test
    fun `onAttribution learns an affiliate once, and not again after a restart`() {
        val learnt = LinkedBlockingQueue<String>()
        val options = TributaryOptions(onAttribution = { learnt.put(it) })
        start(options).run {
            applied("SPRING")
            applied("SUMMER")
        }
        start(options).identified("u")
        assertEquals(listOf("aff_1"), learnt.toList())
    }

    @Test
    fun `the affiliate is null as soon as reset returns`() {
        val sdk = start()
        sdk.applied("SPRING")
        assertEquals("aff_1", sdk.attributedAffiliateId())
        sdk.reset()
        assertNull(sdk.attributedAffiliateId())
        sdk.applied("SUMMER")
        assertEquals("aff_1", sdk.attributedAffiliateId())
    }

    private fun TributarySdk.debugged(): DebugState? =
        CompletableFuture<DebugState?>().also { future -> debugState { future.complete(it) } }.result()

    @Test
    fun `the device id is the one that is sent, and null without a consent`() {
        val sdk = start()
        sdk.applied("SPRING")
        assertEquals(bodies.take()["deviceId"], sdk.deviceId())
        sdk.setEnabled(false)
        assertNull(sdk.deviceId())
        sdk.setEnabled(true)
        sdk.applied("SUMMER")
        assertEquals(bodies.take()["deviceId"], sdk.deviceId())
        val first = sdk.deviceId()
        sdk.reset()
        assertNotEquals(first, sdk.deviceId())
    }

    @Test
    fun `the device id is null before the start, and while the consent is undecided`() {
        val sdk = TributarySdk(Platform())
        assertNull(sdk.deviceId())
        sdk.setEnabled(false)
        val storage = FileStorage(File(folder.root, "undecided.json"))
        assertTrue(sdk.start("pk_live_test", TributaryOptions(apiBaseUrl = "http://127.0.0.1:9"), Environment(storage)))
        assertEquals("undecided", sdk.debugged()?.consent)
        assertNull(sdk.deviceId())
    }

    @Test
    fun `the debug state is null before the start`() = assertNull(TributarySdk(Platform()).debugged())

    @Test
    fun `the debug state names what was answered and nothing personal`() {
        val sdk = start()
        refusals.put("""{"code":"unknown_code","detail":"u@x.test"}""")
        sdk.applied("SECRETCODE")
        refusals.put("""{"code":"User u@x.test"}""")
        sdk.identified("u@x.test")
        sdk.applied("SPRING")
        val state = sdk.debugged()!!
        val expected = mapOf(
            "sdk" to "jvm/$VERSION",
            "host" to "http://127.0.0.1:${server.address.port}",
            "consent" to "granted",
            "deviceId" to sdk.deviceId()?.take(8),
            "isStored" to true,
            "attribution" to "attributed",
            "hasUser" to false,
            "queued" to emptyList<Any>(),
            "answers" to listOf(
                mapOf("kind" to "code", "outcome" to "refused", "status" to 400, "code" to "unknown_code"),
                mapOf("kind" to "user", "outcome" to "refused", "status" to 400, "code" to null),
                mapOf("kind" to "code", "outcome" to "accepted", "status" to 200, "code" to null),
            ),
            "nextTryInSeconds" to null,
        )
        assertEquals(expected, state.toMap())
        assertEquals(Json.write(expected), "$state")
    }

    @Test
    fun `the debug state says what is queued, since when and until when`() {
        val clock = TestClock(1_767_225_600_000)
        val platform = TestPlatform(Platform(), clock, 0.5, { "00000000-0000-4000-8000-000000000001" })
        val token = "11111111-1111-4111-8111-111111111111"
        // Nothing listens there.
        val options = TributaryOptions(apiBaseUrl = "http://127.0.0.1:9", deferredMatch = true)
        val sdk = start(options, platform = platform)
        sdk.attribute("app://x/?claim_token=$token&via=CODE")
        sdk.identified("u@x.test")
        sdk.applyCode("CODE")
        eventually { sdk.debugged()!!.answers.size == 2 }
        clock.shift(1500)
        val state = sdk.debugged()!!
        assertEquals("unknown", state.attribution)
        assertTrue(state.hasUser)
        assertEquals(
            listOf("token" to 1L, "code" to 1L, "deferred" to null, "user" to 1L),
            state.queued.map { it.kind to it.ageSeconds },
        )
        val failed = state.answers.map { listOf(it.kind, it.outcome, it.status, it.code) }.toSet()
        assertEquals(setOf(listOf("token", "failed", null, null)), failed)
        // The second failure waits four seconds, less a random quarter.
        assertEquals(2L, state.nextTryInSeconds)
        for (secret in listOf(token, "CODE", "u@x.test")) assertFalse(secret in "$state")
    }

    @Test
    fun `the debug state says how long the deferred match waits, and knows a test key`() {
        val clock = TestClock(1_767_225_600_000)
        val platform = TestPlatform(Platform(), clock, 0.5, { "00000000-0000-4000-8000-000000000001" })
        val sdk = TributarySdk(platform)
        val options = TributaryOptions(apiBaseUrl = "http://127.0.0.1:9", deferredMatch = true)
        assertTrue(sdk.start("pk_test_1", options, Environment(FileStorage(File(folder.root, "test.json")))))
        val state = sdk.debugged()!!
        assertEquals("http://127.0.0.1:9#test", state.host)
        assertEquals(listOf("deferred"), state.queued.map { it.kind })
        assertEquals(2L, state.nextTryInSeconds)
        sdk.setEnabled(false)
        val refused = sdk.debugged()!!
        assertEquals(listOf("refused", null, "none"), listOf(refused.consent, refused.deviceId, refused.attribution))
        assertTrue(refused.queued.isEmpty())
    }

    /** Returns the kinds of what a first start queues, for an app that was installed so many ms before. */
    private fun queuedAfterFirstStart(installedBefore: Long?): List<String> {
        val clock = TestClock(1_767_225_600_000)
        val sdk = TributarySdk(TestPlatform(Platform(), clock, 0.5) { "device" })
        val options = TributaryOptions(apiBaseUrl = "http://127.0.0.1:9", deferredMatch = true)
        val storage = FileStorage(folder.newFile().also { it.delete() })
        val environment = Environment(storage, "pk_live_test", installedAt = installedBefore?.let { clock.now() - it })
        assertTrue(sdk.start(null, options, environment))
        return sdk.debugged()!!.queued.map { it.kind }
    }

    @Test
    fun `the user of an app that was installed a day before the first start is not matched by address`() {
        assertEquals(listOf("deferred"), queuedAfterFirstStart(null))
        assertEquals(listOf("deferred"), queuedAfterFirstStart(-State.DAY_MS))
        assertEquals(listOf("deferred"), queuedAfterFirstStart(State.DAY_MS))
        assertEquals(emptyList<String>(), queuedAfterFirstStart(State.DAY_MS + 1))
    }

    private fun eventually(isSo: () -> Boolean) {
        val endAt = System.nanoTime() + TimeUnit.SECONDS.toNanos(30)
        while (!isSo()) {
            assertTrue("It does not happen.", System.nanoTime() < endAt)
            Thread.sleep(1)
        }
    }

    @Test
    fun `a call that is made in a callback is answered`() {
        val sdk = start()
        val second = CompletableFuture<Boolean>()
        sdk.applyCode("SPRING") { sdk.identify("u") { isBound -> second.complete(isBound) } }
        assertTrue(second.result())
    }

    @Test
    fun `a callback that throws does not break the next call`() {
        val sdk = start(TributaryOptions(logger = {}))
        sdk.applyCode("SPRING") { error("The host app is broken.") }
        assertTrue(sdk.identified("u"))
    }

    /** Accepts one connection, and completes when the other side has closed it. */
    private class SilentServer : AutoCloseable {
        private val socket = ServerSocket(0, 1, InetAddress.getLoopbackAddress())
        val url = "http://127.0.0.1:${socket.localPort}"
        val received = CompletableFuture<Unit>()
        val closed = CompletableFuture<Unit>()

        init {
            Thread {
                socket.accept().use { connection ->
                    val input = connection.getInputStream()
                    try {
                        while (input.read() >= 0) received.complete(Unit)
                    } catch (_: IOException) {
                        // Reset by the other side.
                    }
                    closed.complete(Unit)
                }
            }.apply { isDaemon = true }.start()
        }

        override fun close() = socket.close()
    }

    @Test
    fun `a reset closes the connection of the request in flight`() {
        SilentServer().use { silent ->
            val sdk = start(TributaryOptions(silent.url))
            sdk.applyCode("SPRING")
            silent.received.result()
            sdk.reset()
            silent.closed.get(5, TimeUnit.SECONDS)
        }
    }

    @Test
    fun `a request without an answer is given up after ten seconds, and its connection is closed`() {
        SilentServer().use { silent ->
            val clock = TestClock(0)
            val sdk = start(TributaryOptions(silent.url), platform = TestPlatform(Platform(), clock, 0.0) { "device" })
            val result = CompletableFuture<Boolean>()
            sdk.applyCode("SPRING") { result.complete(it) }
            silent.received.result()
            clock.tick(9_999)
            clock.tick(1)
            assertEquals(false, result.get(5, TimeUnit.SECONDS))
            silent.closed.get(5, TimeUnit.SECONDS)
        }
    }

    @Test
    fun `a call after a start that failed is answered with false, and made by the next start`() {
        var isBroken = true
        val platform = object : Platform() {
            override fun newId(): String = if (isBroken) error("There is no randomness.") else super.newId()
        }
        val sdk = start(platform = platform)
        assertEquals(false, sdk.identified("u"))
        assertEquals(false, sdk.applied("SPRING"))
        sdk.setEnabled(false)
        sdk.setEnabled(true)
        isBroken = false
        val environment = Environment(FileStorage(File(folder.root, "state.json")))
        assertTrue(sdk.start("pk_live_test", TributaryOptions(), environment))
        assertTrue(sdk.applied("SUMMER"))
        // Before a start an opt-out leaves the consent undecided, so that the code waits for it.
        assertEquals("SPRING", bodies.take()["affiliateCode"])
        assertEquals("aff_1", sdk.attributedAffiliateId())
    }

    @Test
    fun `calls of a start that failed are sent by the next start`() {
        var isBroken = true
        val platform = object : Platform() {
            override fun newId(): String = if (isBroken) error("There is no randomness.") else super.newId()
        }
        val sdk = start(platform = platform)
        assertEquals(false, sdk.applied("SPRING"))
        isBroken = false
        assertTrue(sdk.start(null, TributaryOptions(), Environment(FileStorage(File(folder.root, "state.json")))))
        assertEquals("SPRING", bodies.poll(5, TimeUnit.SECONDS)?.get("affiliateCode"))
    }

    @Test
    fun `a referrer source that fails does not keep the SDK from starting`() {
        val broken = object : ReferrerSource {
            override fun isPending(): Boolean = error("The storage is locked.")

            override fun read(onResult: (Referral?) -> Unit) = Unit

            override fun onStored() = Unit

            override fun discard() = error("The storage is locked.")
        }
        val sdk = start(referrer = broken)
        sdk.reset()
        assertTrue(sdk.applied("SPRING"))
    }

    /** An app store that answers when the test says so. */
    private class FakeStore : ReferrerSource {
        val asked = CompletableFuture<(Referral?) -> Unit>()
        var stored = 0
        var discarded = 0

        override fun isPending() = stored == 0 && discarded == 0

        override fun read(onResult: (Referral?) -> Unit) {
            asked.complete(onResult)
        }

        override fun onStored() {
            stored += 1
        }

        override fun discard() {
            discarded += 1
        }
    }

    @Test
    fun `the first user waits for the referrer of the app store, which is asked once`() {
        val store = FakeStore()
        // No timer ends the wait.
        val platform = TestPlatform(Platform(), TestClock(0), 0.0) { "device" }
        val sdk = start(referrer = store, platform = platform)
        val bound = CompletableFuture<Boolean>()
        sdk.identify("u") { bound.complete(it) }
        store.asked.result()(Referral.fromQuery("utm_source=x&via=spring"))
        assertTrue(bound.result())
        assertEquals("spring", bodies.take()["affiliateCode"])
        assertEquals("u", bodies.take()["customerUserId"])
        assertEquals(1, store.stored)
    }

    @Test
    fun `a referrer that is answered after a reset counts for nothing`() {
        val store = FakeStore()
        val sdk = start(referrer = store)
        val answerOfStore = store.asked.result()
        sdk.reset()
        answerOfStore(Referral.fromQuery("via=spring"))
        answer = """{"attributionId":null,"affiliateId":null}"""
        sdk.identified("u")
        assertEquals("u", bodies.take()["customerUserId"])
        assertTrue(bodies.isEmpty())
        assertEquals(1, store.discarded)
        assertEquals(0, store.stored)
    }

    @Test
    fun `a referrer that is answered after an opt-out counts for nothing and is asked for at the next start`() {
        val store = FakeStore()
        val sdk = start(referrer = store)
        val answerOfStore = store.asked.result()
        sdk.setEnabled(false)
        answerOfStore(Referral.fromQuery("via=spring"))
        assertEquals(false, sdk.identified("u"))
        assertTrue(bodies.isEmpty())
        assertTrue(store.isPending())
    }

    @Test
    fun `the app store is not asked after an opt-out`() {
        val store = FakeStore()
        start().run {
            setEnabled(false)
            identified("u")
        }
        start(referrer = store).identified("u")
        assertTrue(!store.asked.isDone)
        assertTrue(bodies.isEmpty())
    }

    @Test
    fun `a refused deferred match is asked again by a device whose clock is two days fast`() {
        refusals.put("""{"errors":[{"path":"firstOpenAt","message":"Must not be in the future."}]}""")
        val startedAt = System.currentTimeMillis()
        val clock = TestClock(startedAt + 2 * State.DAY_MS)
        val options = TributaryOptions(deferredMatch = true)
        val sdk = start(options, platform = TestPlatform(Platform(), clock, 0.0) { "device" })
        val bound = CompletableFuture<Boolean>()
        sdk.identify("u") { bound.complete(it) }
        // An answered call means that the start is over and that the timer of the deferred match is set.
        assertEquals(false, sdk.applied(""))
        clock.tick(2_000)
        assertEquals(startedAt + 2 * State.DAY_MS, bodies.poll(5, TimeUnit.SECONDS)?.get("firstOpenAt"))
        val second = bodies.poll(5, TimeUnit.SECONDS)
        assertEquals(true, second?.get("deferred"))
        assertEquals(startedAt.toDouble(), (second?.get("firstOpenAt") as Long).toDouble(), 60_000.0)
        assertTrue(bound.result())
    }

    @Test
    fun `a process ends while something waits to be sent again`() {
        val classPath = System.getProperty("surefire.test.class.path") ?: System.getProperty("java.class.path")
        val java = File(System.getProperty("java.home"), "bin/java").path
        val process = ProcessBuilder(java, "-cp", classPath, "dev.tributary.OfflineAppKt", File(folder.root, "offline.json").path)
            .redirectErrorStream(true)
            .start()
        assertEquals("false\n", process.inputStream.reader().readText())
        assertTrue(process.waitFor(10, TimeUnit.SECONDS))
        assertEquals(0, process.exitValue())
    }
}
